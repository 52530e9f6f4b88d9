"""The report's words in English. Backticks and double asterisks are markup; what stands in braces is filled in."""

from __future__ import annotations

__all__ = ["WORDS"]

WORDS = {
    "lang": "en",
    "title": "Budget report: {total} ms for one request",
    "title_named": "Budget report of `{name}`: {total} ms for one request",
    "short": (
        "**In short.** A request has {total} ms. {n} calls get {calls} ms of it, {reserve} ms are kept for our own "
        "work, {spare} ms are handed out to nobody; whatever the other sides do, the request is over after {worst} "
        "ms. When a party falls silent, that holds at most {few} workers at {rate} requests a second. A timeout of "
        "{long} s would let it hold {many}."
    ),
    # 1
    "now": "What takes the time now",
    "now_measured": "`seawall probe` measured how long it takes to get no answer{limits}:",
    "now_limits": ", with {list}",
    "limit_connect": "{seconds} s to connect",
    "limit_read": "{seconds} s without a byte",
    "and": " and ",
    "kind": "Kind",
    "target": "Target",
    "elapsed_ms": "Took (ms)",
    "error": "Error",
    "now_refused": "A refusal is cheap: {ms} ms. A process that is down gives the worker back at once.",
    "now_connect": "An address where nobody answers the door costs {ms} ms.",
    "now_read": "A party that takes the request and then says nothing costs {ms} ms.",
    "now_times": "That is {times} times a refusal.",
    "now_ours": (
        "**What silence costs is set by our own limits; the other side has no part in it.** It could be slow by a "
        "minute or by an hour, the number would be the same. How long a slow party holds a worker is decided on our side."
    ),
    "now_today": (
        "Put together, one attempt may take {attempt} ms today. Once for each of the {n} calls that is {n} x {each} "
        "= {once} ms, and with all {attempts} attempts that the plan allows {attempts} x {each} = {all} ms, waits "
        "not counted. A request is to take {total} ms. "
    ),
    "now_over": (
        "**Limits of attempts do not add up to a limit of the request**: that has to be set on the whole, and handed "
        "down."
    ),
    "now_fits": (
        "It fits today. Nothing keeps it that way: the next call that is added, or the next limit that is raised, is "
        "checked against the whole by nobody."
    ),
    "now_others": "The file also says: ",
    # 2
    "divided": "How the phases were divided",
    "call": "Call",
    "from": "From (ms)",
    "to": "To (ms)",
    "budget_ms": "Budget (ms)",
    "share": "Share",
    "reserve": "reserve",
    "left_over": "left over",
    "total": "total",
    "div_sum": (
        "{sum} = {calls} ms for calls; with the reserve of {reserve} ms the worst case is {worst} ms, at most the "
        "total of {total} ms. {spare} ms are left over."
    ),
    "div_chart": (
        "When everything goes wrong, this is how each budget is spent: `#` an attempt, `.` a wait at its ceiling, "
        "`-` what remains of the budget, `=` the reserve."
    ),
    "div_order": (
        "The calls are made one after another, and the times are the latest ones: a call that is done sooner leaves "
        "its time to those after it. No call may take more than its own budget, nor more than is left of the total."
    ),
    "div_largest": (
        "`{name}` has the largest part, {budget} ms or {share} of the total. If the total has to shrink, that is "
        "where to begin."
    ),
    "div_reserve": (
        "The reserve of {reserve} ms is for what comes after the last call: putting the answer together and sending "
        "it. A request that spends everything on calls can no longer say so in time."
    ),
    "div_connect": (
        "Connect and read are two limits. Seconds to connect mean that a party is unreachable, not that it is slow. "
        "The shortest attempt is {attempt} ms (`{name}`); the {ms} ms to connect that were measured leave {rest} ms "
        "of it for the other side's work."
    ),
    "div_connect_over": (
        "Connect and read are two limits. Seconds to connect mean that a party is unreachable, not that it is slow. "
        "The {ms} ms to connect that were measured use up the shortest attempt, {attempt} ms (`{name}`), and leave "
        "nothing for the other side's work: lower the connect limit first."
    ),
    "div_read_over": (
        "The {ms} ms of silence that were measured are longer than an attempt may last at {names}. The limit of an "
        "attempt has to come from the plan and from what is left of the budget, not from a constant."
    ),
    "div_read": "The {ms} ms of silence that were measured fit into an attempt of each call.",
    # 3
    "retries": "What share retries take",
    "re_formula": (
        "Retries get no time of their own. Attempts and waits of a call come out of its budget: at worst "
        "`max_attempts * attempt_ms`, plus a wait of at most `base_ms * 2^(i-1)` after attempt i."
    ),
    "attempts": "Attempts (ms)",
    "base_ms": "First wait (ms)",
    "waits": "Waits at most (ms)",
    "worst_ms": "Worst case (ms)",
    "for_retries": "Of that for retries",
    "re_default": "For {names} the plan gives no limit of an attempt, so the budget is divided by the attempts.",
    "re_sum": (
        "Of the {calls} ms for calls, {retries} ms ({share}) are there only for second and further attempts and the "
        "waits before them. On a good day nobody uses them; on a bad day every user waits for them."
    ),
    "re_none": "No call is tried twice, so of the {calls} ms for calls retries take 0 ms (0 %).",
    "re_waits": (
        "Each wait is drawn evenly between 0 and its ceiling, so that callers do not return all at once. All waits "
        "together take {waits} ms at most and {mean} ms on average."
    ),
    "re_load": (
        "Retries also multiply the load, just when it can be borne least: {n} calls of a request become up to "
        "{attempts} attempts, {times} times as many. At {rate} requests a second {few} calls a second become up to "
        "{many}. Cap the extra attempts over all callers as well (a retry budget)."
    ),
    "re_over": (
        "`{name}`: with retries {sum}, more than its budget of {budget} ms. The budget ends it all the same: the "
        "last attempts are cut or not made, and nobody should count on them."
    ),
    # 4
    "past": "What happens past the budget",
    "past_skip": (
        "**A call with nothing left is not made.** It ends at once as `no_budget`, and costs neither side anything."
    ),
    "past_cut": (
        "**A call whose time is up is cut.** Its read limit is what is left at that moment, and the deadline of the "
        "whole also ends an answer that drips in byte by byte."
    ),
    "past_retry": (
        "**A retry that no longer fits is not begun.** Before each wait it is asked whether the wait and one more "
        "attempt fit into what is left."
    ),
    "past_tell": (
        "**The callee is told what is left** (`X-Budget-Ms`), so that it does not go on working for a caller who has "
        "gone."
    ),
    "past_answer": (
        "**The request answers within {total} ms all the same**: with what it has, or with a clear refusal. The last "
        "call ends by {end} ms at the latest, and the reserve of {reserve} ms is for that answer."
    ),
    "arg_law": (
        "**Why not just raise the timeout?** Because a worker that waits is a worker that is taken. On average "
        "`workers = rate x limit` of them are (Little's law), and a limit is the only part of that we choose. While "
        "a party is silent:"
    ),
    "limit": "A worker comes back after",
    "ms": "ms",
    "at_rate": "Workers at {rate}/s",
    "refused": "a refusal (measured)",
    "connect_timeout": "the connect limit (measured)",
    "read_timeout": "the read limit (measured)",
    "largest": "the largest budget of a call",
    "worst": "the worst case",
    "total_limit": "the total",
    "half_a_minute": "30 s",
    "ten_totals": "ten totals",
    "arg_cost": (
        "At {rate} requests a second the total of {total} ms ties up {few} workers, {long} s tie up {many}. The "
        "{more} workers in between wait for an answer that does not come. None of their users is served better for "
        "it."
    ),
    "arg_pool": (
        "Take a pool of {pool} workers, just enough for {rate} requests a second at {total} ms. When the party falls "
        "silent, all of them are waiting {fill} ms later. With {total} ms as the limit, from then on one comes back "
        "for each that is taken: every request still gets its turn. With {long} s the first one comes back {gap} ms "
        "later. Until then nobody is served, and {stranded} requests stand in line, those included that do not need "
        "this party at all."
    ),
    "arg_end": (
        "A longer limit does not make a silent party speak. It only decides how many of our workers keep it company. "
        "If {total} ms are too short for honest work, argue about that one number, for the whole request, with this "
        "table at hand."
    ),
    # the chart
    "chart": "The plan on a time line of {total} ms",
    "key_attempt": "attempt",
    "key_wait": "wait, at its ceiling",
    "key_rest": "rest of the budget",
    "key_reserve": "reserve",
    "key_spare": "left over",
}
