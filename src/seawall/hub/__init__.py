"""The hub: a relay that puts the wall in front of targets for programs in any language."""
