from __future__ import annotations

import pytest

from jobs.cron import Cron


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * *", "at 02:30 every day"),
        ("0,30 9 * * MON-FRI", "at 09:00 and 09:30 on Monday, Tuesday, Wednesday, Thursday and Friday"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("@hourly", "every hour, on the hour"),
        ("7 * * * *", "at minute 7 of every hour"),
        ("*/10 9-17 * * *", "every 10 minutes of the hours 09 to 17 every day"),
        ("0 0 1 JAN *", "at 00:00 on day 1 of the month in January"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 8 * * 1#1,5L", "at 08:00 on the first Monday of the month and the last Friday of the month"),
        ("0 0 * * 7,6", "at 00:00 on Saturday and Sunday"),
        ("5 */6 * * *", "at 00:05, 06:05, 12:05 and 18:05 every day"),
    ],
)
def test_a_rule_in_words(expression: str, words: str) -> None:
    assert Cron(expression).description == words
