"""Configurations for nginx (target and relay) and HAProxy (relay): one worker or thread each, no access log."""

from __future__ import annotations

import os
from pathlib import Path

NGINX_BASE = """
worker_processes 1;
daemon off;
pid {d}/nginx.pid;
error_log {d}/error.log crit;
{user}
worker_rlimit_nofile {files};
events {{ worker_connections 8192; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  client_body_buffer_size 64k;
  client_body_temp_path {d}/tmp-body;
  proxy_temp_path {d}/tmp-proxy;
  fastcgi_temp_path {d}/tmp-fastcgi;
  uwsgi_temp_path {d}/tmp-uwsgi;
  scgi_temp_path {d}/tmp-scgi;
{body}
}}
"""
TARGET_BODY = """
  sendfile on;
  default_type application/octet-stream;
  open_file_cache max=100 inactive=1h;
  open_file_cache_valid 1h;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    root {d}/www;
    location = /post {{ return 200 "0123456789abcdef"; }}
  }}
"""
# nginx watches a group's servers (max_fails) only when there are two: the second is the same one as backup.
UPSTREAM = """
  upstream {name} {{
    server 127.0.0.1:{port} max_fails=3 fail_timeout=5s max_conns=4096;
    server 127.0.0.1:{port} backup;
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
  }}
"""
RELAY_SERVER = """
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_read_timeout 120s;
  proxy_connect_timeout 2s;
  proxy_buffers 8 16k;
  proxy_buffer_size 16k;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
{locations}
  }}
"""
HAPROXY = """
global
  nbthread 1
  maxconn 9000
  tune.maxpollevents 200
defaults
  mode http
  timeout connect 2s
  timeout client 3600s
  timeout server 120s
  timeout queue 1s
  retries 2
frontend front
  bind 127.0.0.1:{port} backlog 4096
{choice}
{backends}
"""
HAPROXY_BACKEND = """
backend {name}
  option forwardfor
  option redispatch
  http-reuse always
  {rewrite}
  server only 127.0.0.1:{port} maxconn 4096 pool-max-conn 2048 check inter 5s observe layer4
"""


def _nginx(d: Path, body: str) -> list[str]:
    user = "user root;" if os.geteuid() == 0 else ""  # the work folder belongs to who runs the benchmark
    (d / "nginx.conf").write_text(NGINX_BASE.format(d=d, user=user, files=20000, body=body))
    return ["nginx", "-p", str(d), "-c", str(d / "nginx.conf"), "-e", str(d / "start.log")]


def nginx_target(d: Path, port: int) -> list[str]:
    """The target: ``/1k`` and ``/64k`` are files, ``POST /post`` reads the body and answers 16 bytes."""
    www = d / "www"
    www.mkdir(exist_ok=True)
    (www / "1k").write_bytes(b"x" * 1024)
    (www / "64k").write_bytes(b"y" * 65536)
    return _nginx(d, TARGET_BODY.format(d=d, port=port))


def nginx_relay(d: Path, port: int, routes: dict[str, int]) -> list[str]:
    """nginx as the relay.

    Args:
        d: Folder for its files.
        port: Where it listens.
        routes: Target name to port; ``/NAME/path`` goes there as ``/path``. The name ``""`` takes every path unchanged.
    """
    upstreams = "".join(UPSTREAM.format(name=f"up{n}", port=p) for n, p in routes.items())
    locations = "\n".join(f"    location /{n}/ {{ proxy_pass http://up{n}/; }}" if n
                          else "    location / { proxy_pass http://up; }" for n in routes)
    return _nginx(d, upstreams + RELAY_SERVER.format(port=port, locations=locations))


def haproxy_relay(d: Path, port: int, routes: dict[str, int]) -> list[str]:
    """HAProxy as the relay; ``routes`` as for :func:`nginx_relay`."""
    choice = "\n".join(f"  use_backend up{n} if {{ path_beg /{n}/ }}" if n else "  default_backend up" for n in routes)
    backends = "".join(
        HAPROXY_BACKEND.format(name=f"up{n}", port=p,
                               rewrite=r"http-request replace-path /[^/]+(/.*) \1" if n else "")
        for n, p in routes.items())
    (d / "haproxy.cfg").write_text(HAPROXY.format(port=port, choice=choice, backends=backends))
    return ["haproxy", "-db", "-q", "-f", str(d / "haproxy.cfg")]
