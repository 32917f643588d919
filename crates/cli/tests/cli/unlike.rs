//! Comparing what a page shows with what was printed, but for what differs from run to run: ids,
//! times, process numbers, how long things really took, and how far a job had come when it was killed.

/// Whether a page shows what was printed. A line `…` of the page stands for any number of lines.
pub(crate) fn alike(shown: &str, printed: &str) -> bool {
    matches(&lines(shown), &lines(printed))
}

/// The same for lines in any order; then nothing can be left out.
pub(crate) fn alike_in_any_order(shown: &str, printed: &str) -> bool {
    let sorted = |text| {
        let mut lines = lines(text);
        lines.sort_unstable();
        lines
    };
    sorted(shown) == sorted(printed)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(without_chance).collect()
}

fn matches(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            let mut ends = (0..=printed.len()).filter_map(|from| printed.get(from..));
            ends.any(|end| matches(rest, end))
        }
        Some((line, rest)) => match printed.split_first() {
            Some((first, others)) => line == first && matches(rest, others),
            None => false,
        },
    }
}

fn without_chance(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let standing = ["resuming;", "recovered", "attempts"].contains(&first);
    let listed = words.get(1) == Some(&"interrupted");
    let indent = line.chars().take_while(|sign| *sign == ' ').count();
    let mut plain: Vec<String> = Vec::new();
    let mut before = "";
    for (place, word) in words.iter().enumerate() {
        let after = words.get(place + 1).copied().unwrap_or_default();
        // A line of a timeline, drawn to scale.
        if word.chars().all(|sign| "=.x+~".contains(sign)) {
            before = word;
            continue;
        }
        let measured = ["after", "took", "downtime", "timeline"].contains(&before)
            || after == "ago"
            || is_of_now(words.get(..place).unwrap_or_default())
            || without_ids(before) == "TIME";
        let counted = before == "process" || after == "records," || standing || listed;
        plain.push(match word {
            word if measured && is_duration(word) => format!("SOON{}", end_of(word)),
            word if counted && is_number(word) => "NUMBER".to_owned(),
            word => without_ids(word),
        });
        before = word;
    }
    format!("{}{}", " ".repeat(indent), plain.join(" "))
}

/// Whether what comes next depends on the moment: `held by api for …`, `next probe in …`.
fn is_of_now(words: &[&str]) -> bool {
    matches!(
        words,
        [.., "by", _, "for"] | [.., "held", "for"] | [.., "probe" | "fails", "in"] | [.., "another" | "(in"]
    )
}

/// What stands behind a word.
fn end_of(word: &str) -> &str {
    let kept = word.trim_end_matches([',', ';', ')', ':']);
    word.get(kept.len()..).unwrap_or_default()
}

/// `12`, or `12/1000`. Ten digits are the name of a job that happens to have no letter.
fn is_number(word: &str) -> bool {
    let word = word.trim_end_matches(',');
    !word.is_empty() && word.len() != 10 && word.chars().all(|sign| sign.is_ascii_digit() || sign == '/')
}

fn is_duration(word: &str) -> bool {
    let word = word.trim_start_matches('<');
    let word = word.strip_suffix(end_of(word)).unwrap_or(word);
    let begins = word.starts_with(|sign: char| sign.is_ascii_digit());
    begins && word.ends_with(['s', 'm', 'h'])
}

/// The word without ids and times: `job/item` and `'job/item'` too.
fn without_ids(word: &str) -> String {
    let mut plain = String::new();
    for part in word.split_inclusive(|sign: char| "/'`\":,;()".contains(sign)) {
        let kept = part.trim_end_matches(['/', '\'', '`', '"', ':', ',', ';', '(', ')']);
        // The file of a job is called after it.
        let kept = kept.strip_suffix(".undaunted.jsonl").unwrap_or(kept);
        let end = part.get(kept.len()..).unwrap_or_default();
        let hex = !kept.is_empty() && kept.chars().all(|sign| "0123456789abcdef-".contains(sign));
        let replaced = match kept.len() {
            10 if is_date(kept) => "DATE",
            10 if hex => "JOB",
            16 if hex => "PRINT",
            36 if hex => "UUID",
            13 if is_date(kept.get(..10).unwrap_or_default()) => "DATE",
            _ => kept,
        };
        plain.push_str(replaced);
        plain.push_str(end);
    }
    // The rest of a time, in pieces by now: `DATE:47:38.293Z`, or `20:46:53`.
    match plain.split_once("DATE:") {
        Some((start, rest)) => {
            let rest = rest.split_once('Z').map_or("", |(_, rest)| rest);
            format!("{start}TIME{rest}")
        }
        None if is_clock(&plain) => "CLOCK".to_owned(),
        None => plain,
    }
}

fn is_date(word: &str) -> bool {
    let sign = |place| word.as_bytes().get(place);
    sign(4) == Some(&b'-') && sign(7) == Some(&b'-')
}

fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    parts.len() == 3 && parts.iter().all(|part| part.len() == 2 && is_number(part))
}

#[test]
fn run_specific_differences_do_not_count() {
    for (shown, printed) in [
        ("job 5d1c0e93b7  survive", "job aaaaaaaaaa  survive"),
        ("1 item; took 4.528s", "1 item; took 12ms"),
        ("at 2026-11-15T20:47:38.293Z: a", "at 2025-01-15T00:00:00.000Z: a"),
        ("x  2026-11-15 20:47:38  y", "x  2026-11-16 21:47:38  y"),
        ("why: explain '5d1c0e93b7/a'", "why: explain 'bbbbbbbbbb/a'"),
        ("a\n…\nb", "a\nc\nd\nb"),
    ] {
        assert!(alike(shown, printed), "{shown}: {}", without_chance(printed));
    }
    for (shown, printed) in [
        ("retry 1 of 2 in 200ms", "retry 1 of 2 in 400ms"),
        ("1 item; took 4s", "2 items; took 4s"),
        ("a\n…\nb", "a\nc\nd"),
    ] {
        assert!(!alike(shown, printed), "{shown}");
    }
}
