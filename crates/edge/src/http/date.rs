//! The date as HTTP writes it.

/// A day as the calendar has it: year, month from 0, day from 1. Days to dates as in Howard Hinnant's `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    (era * 400 + year_of_era + (month < 2) as u64, month, day)
}

/// The time, in milliseconds since 1970-01-01 UTC, as `1994-11-06T08:49:37.000Z`. Source: RFC 3339 §5.6.
pub fn rfc3339(unix_ms: u64) -> String {
    let (second, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (year, month, day) = civil(second / 86_400);
    let (hour, minute, second) = (second / 3_600 % 24, second / 60 % 60, second % 60);
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", month + 1)
}

/// The time, in seconds since 1970-01-01 UTC, as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// Source: RFC 9110 §5.6.7, IMF-fixdate.
pub fn imf_fixdate(unix_s: u64) -> [u8; 29] {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"Sun, 06 Nov 1994 08:49:37 GMT";
    // 1970-01-01 was a Thursday.
    text[..3].copy_from_slice(&WEEKDAYS[(days % 7) as usize]);
    text[8..11].copy_from_slice(&MONTHS[month as usize]);
    two_digits(&mut text, 5, day);
    two_digits(&mut text, 12, year / 100);
    two_digits(&mut text, 14, year);
    two_digits(&mut text, 17, second / 3_600);
    two_digits(&mut text, 20, second / 60 % 60);
    two_digits(&mut text, 23, second % 60);
    text
}

fn two_digits(text: &mut [u8; 29], at: usize, number: u64) {
    text[at] = b'0' + (number / 10 % 10) as u8;
    text[at + 1] = b'0' + (number % 10) as u8;
}

const WEEKDAYS: [[u8; 3]; 7] = [*b"Thu", *b"Fri", *b"Sat", *b"Sun", *b"Mon", *b"Tue", *b"Wed"];
const MONTHS: [[u8; 3]; 12] =
    [*b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov", *b"Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_as_date_prints_them() {
        // From `date -u -d @N '+%a, %d %b %Y %H:%M:%S GMT'`.
        for (unix_s, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(std::str::from_utf8(&imf_fixdate(unix_s)), Ok(text));
        }
        assert_eq!(rfc3339(951_782_399_042), "2000-02-28T23:59:59.042Z");
        assert_eq!(rfc3339(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
    }
}
