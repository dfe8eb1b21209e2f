"""Real crontabs: what is read, what is refused with a reason, and that writing gives it back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.crontab import Crontab, Entry, read, write

SYSTEM = """\
# /etc/crontab: system-wide crontab
SHELL=/bin/bash
PATH = /usr/local/sbin:/usr/local/bin:/sbin:/bin
MAILTO=root

17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || run-parts /etc/cron.daily
CRON_TZ=Europe/Berlin
NAME="two  words"
  @daily www-data mail -s hello admin%Dear admin,%50\\% of it.
RANDOM_DELAY=5
0 9 * * MON-FRI app_1 /opt/report --day=$(date +\\%F)
"""
USER = """\
*/5 * * * * /usr/bin/env python3 sync.py  --all
-0 4 * * * quiet
@hourly beat
"""


def entries(text: str, *, users: bool = False) -> list[Entry]:
    found = read(text, users=users)
    assert found.problems == []
    return found.entries


def test_a_system_crontab_is_read_with_its_users_variables_and_zones() -> None:
    hourly, daily, mail, report = entries(SYSTEM, users=True)
    assert (hourly.expression, hourly.user) == ("17 * * * *", "root")
    assert hourly.command == "cd / && run-parts --report /etc/cron.hourly"
    assert hourly.environment == {"SHELL": "/bin/bash", "PATH": "/usr/local/sbin:/usr/local/bin:/sbin:/bin"}
    assert daily.command == "test -x /usr/sbin/anacron || run-parts /etc/cron.daily"
    assert (daily.zone, mail.zone, mail.expression, mail.user) == ("", "Europe/Berlin", "@daily", "www-data")
    assert mail.environment["NAME"] == "two  words"
    assert (report.jitter, report.line) == (timedelta(minutes=5), 12)


def test_a_percent_ends_a_line_and_an_escaped_one_is_itself() -> None:
    *_, mail, report = entries(SYSTEM, users=True)
    assert mail.command == "mail -s hello admin"
    assert mail.stdin == "Dear admin,\n50% of it.\n"
    assert (report.command, report.stdin) == ("/opt/report --day=$(date +%F)", "")


def test_a_users_crontab_has_no_users() -> None:
    sync, quiet, beat = entries(USER)
    assert (sync.command, sync.user) == ("/usr/bin/env python3 sync.py  --all", "")
    assert (quiet.expression, quiet.command, beat.expression) == ("0 4 * * *", "quiet", "@hourly")


def test_what_is_not_used_is_said() -> None:
    assert any("MAILTO" in note for note in read(SYSTEM, users=True).notes)
    assert any("do not log" in note for note in read(USER, users=False).notes)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("@reboot /usr/bin/start", "service of the system"),
        ("@every x", "unknown alias"),
        ("61 * * * * x", "minute: '61'"),
        ("* * * * *", "5 fields and a command"),
        ("@daily", "1 fields and a command"),
        ("nonsense", "5 fields and a command"),
        ("0 0 */2 * 1 x", "when both match"),
        ("0 0 1 * */2 x", "when both match"),
        ("0 0 30 2 * x", "never run"),
        ("* * * * * %only input", "there is none"),
    ],
)
def test_what_cannot_be_taken_over_is_a_problem_with_its_line(line: str, told: str) -> None:
    found = read(f"\n{line}\n0 1 * * * fine\n", users=False)
    (problem,) = found.problems
    assert (problem.line, problem.text) == (2, line)
    assert told in problem.reason
    assert len(found.entries) == 1


def test_a_users_crontab_read_as_a_systems_is_noticed() -> None:
    (problem,) = read("0 1 * * * /usr/bin/backup --all\n", users=True).problems
    assert "--user" in problem.reason


def test_an_unknown_zone_is_refused_at_the_lines_it_rules() -> None:
    (problem,) = read("CRON_TZ=Mars/Base\n0 1 * * * x\n", users=False).problems
    assert (problem.line, "Mars/Base" in problem.reason) == (2, True)


@pytest.mark.parametrize(("text", "users"), [(SYSTEM, True), (USER, False)])
def test_what_is_written_reads_the_same(text: str, users: bool) -> None:
    def told(found: Crontab) -> list[tuple[object, ...]]:
        return [
            (each.expression, each.command, each.stdin, each.user, each.zone, each.jitter, each.environment)
            for each in found.entries
        ]

    first = read(text, users=users)
    assert told(read(write(first.entries, users=users), users=users)) == told(first)
