//! Two hundred malformed scenario files, made from the good ones: each is refused with its file and line, the key or word it
//! is about and, where one is near, the name that was meant; and nothing is booted or looked up for it.

mod common;

use common::{texts, thalweg};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

const FILES: usize = 200;

#[test]
fn two_hundred_malformed_files_are_each_refused_where_they_are_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("cache")).expect("a folder");
    let good = good_files();
    // Without a lab kernel a good file gets as far as looking for one, which is another error with another code.
    let (code, err) = run(folder.path(), &good["first-frame"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("kernel"), "{err}");

    let names: Vec<&String> = good.keys().collect();
    let mut random = Random(2026);
    let mut seen = BTreeSet::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for attempt in 0.. {
        if seen.len() == FILES {
            break;
        }
        assert!(attempt < 100 * FILES, "only {} files: {kinds:?}", seen.len());
        let (kind, spoil) = KINDS[attempt % KINDS.len()];
        let name = *random.pick(&names);
        let Some(spoilt) = spoil(&Good::read(&good[name]), &mut random) else { continue };
        if !seen.insert(spoilt.text.clone()) {
            continue;
        }
        *kinds.entry(kind).or_default() += 1;
        let (code, err) = run(folder.path(), &spoilt.text);
        if let Err(why) = spoilt.is_refused_well(code, &err) {
            wrong.push(format!("{kind} in {name}: {why}\n{err}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {FILES}:\n{}", wrong.len(), wrong.join("\n"));
    for (kind, _) in KINDS {
        assert!(kinds.get(kind).is_some_and(|count| *count >= 3), "too few of '{kind}': {kinds:?}");
    }
}

fn good_files() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(&path).expect("text"));
    }
    files
}

fn run(folder: &Path, text: &str) -> (Option<i32>, String) {
    fs::write(folder.join("s.toml"), text).expect("written");
    let mut command = thalweg(folder, &["lab", "run", "s.toml", "--out", "out"]);
    let output = command.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("the program starts");
    assert!(!folder.join("out/report.json").exists());
    (output.status.code(), texts(&output).1)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn pick_if<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| self.pick(of))
    }

    /// The word with two letters swapped, or one doubled, or one left out.
    fn misspell(&mut self, word: &str) -> String {
        let mut letters: Vec<char> = word.chars().collect();
        loop {
            let at = 1 + self.below(letters.len() - 2);
            match self.below(3) {
                0 if letters[at] != letters[at + 1] => letters.swap(at, at + 1),
                1 => letters.insert(at, letters[at]),
                2 => drop(letters.remove(at)),
                _ => continue,
            }
            return letters.into_iter().collect();
        }
    }
}

/// A good file, line by line.
struct Good<'a> {
    lines: Vec<Line<'a>>,
}

/// A line and the table it is in.
#[derive(Clone)]
struct Line<'a> {
    /// Counted from 0.
    at: usize,
    text: &'a str,
    table: &'a str,
    is_header: bool,
    /// Where its value begins, if it is `key = value`.
    value: Option<usize>,
}

impl<'a> Good<'a> {
    fn read(text: &'a str) -> Self {
        let (mut table, mut is_block) = ("", false);
        let lines = text.lines().enumerate().map(|(at, text)| {
            // Strings of several lines, from the line they begin in to the one they end in, are left alone.
            let quotes = ["'''", "\"\"\""].iter().map(|quote| text.matches(quote).count()).sum::<usize>();
            let is_plain = !is_block && quotes == 0;
            is_block ^= quotes % 2 == 1;
            let is_header = is_plain && text.starts_with('[');
            if is_header {
                table = text.trim_matches(['[', ']']);
            }
            let is_setting = is_plain && !is_header && !text.starts_with('#');
            let value = is_setting.then(|| equals(text).map(|equals| equals + 2)).flatten();
            Line { at, text, table, is_header, value }
        });
        Self { lines: lines.collect() }
    }

    /// `key = value` lines of tables whose keys are the program's.
    fn settings(&self) -> Vec<&Line<'a>> {
        let free = |line: &Line<'_>| line.table == "expect" || line.table == "matrix" || line.table.ends_with("sysctl");
        self.lines.iter().filter(|line| line.value.is_some() && !free(line)).collect()
    }

    fn of_table(&self, table: &str) -> Vec<&Line<'a>> {
        self.lines.iter().filter(|line| line.value.is_some() && line.table == table).collect()
    }

    /// The file with one line replaced; wrong at that line.
    fn with(&self, at: usize, line: &str) -> Spoilt {
        let lines: Vec<&str> = self.lines.iter().map(|one| if one.at == at { line } else { one.text }).collect();
        Spoilt { text: lines.join("\n") + "\n", line: at + 1, says: Vec::new(), hint: None }
    }
}

impl<'a> Line<'a> {
    /// The last part of the key, without quotes.
    fn key(&self) -> &'a str {
        let key = self.value.map_or("", |value| self.text[..value - 2].trim());
        match key.strip_suffix('"') {
            Some(quoted) => quoted.rsplit('"').next().unwrap_or(quoted),
            None => key.rsplit('.').next().unwrap_or(key),
        }
    }

    fn value(&self) -> &'a str {
        self.value.map_or("", |value| self.text[value..].trim())
    }

    fn with_value(&self, value: &str) -> String {
        format!("{}= {value}", &self.text[..self.value.expect("a setting") - 2])
    }

    /// Every bare word of four letters and more that is a key or a part of one.
    fn words(&self) -> Vec<Range<usize>> {
        let mut words = Vec::new();
        let (mut begin, mut quoted) = (None, false);
        for (at, c) in self.text.char_indices() {
            quoted ^= c == '"';
            let inside = !quoted && (c.is_ascii_alphabetic() || c == '_');
            match (inside, begin) {
                (true, None) => begin = Some(at),
                (false, Some(from)) => {
                    let is_key = self.text[at..].trim_start().starts_with(['=', '.']);
                    if at - from >= 4 && is_key {
                        words.push(from..at);
                    }
                    begin = None;
                }
                _ => {}
            }
        }
        words
    }
}

/// Where the `=` after a key is.
fn equals(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == '=' && !quoted).then_some(at)
    })
}

/// A malformed file, and what must be said of it.
struct Spoilt {
    text: String,
    line: usize,
    says: Vec<String>,
    hint: Option<String>,
}

impl Spoilt {
    fn says(mut self, words: &[&str]) -> Self {
        self.says.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    fn hints(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn is_refused_well(&self, code: Option<i32>, err: &str) -> Result<(), String> {
        let first = err.lines().next().unwrap_or_default();
        let place = format!("thalweg: s.toml:{}: ", self.line);
        if code != Some(2) {
            return Err(format!("exit code {code:?}, expected 2"));
        }
        if !err.starts_with(&place) {
            return Err(format!("expected '{place}'"));
        }
        if let Some(word) = self.says.iter().find(|word| !first.contains(word.as_str())) {
            return Err(format!("'{word}' is not named"));
        }
        match &self.hint {
            Some(hint) if !err.lines().skip(1).any(|line| line.contains("hint: ") && line.contains(hint)) => {
                Err(format!("no hint with \"{hint}\""))
            }
            _ => Ok(()),
        }
    }
}

type Spoil = fn(&Good<'_>, &mut Random) -> Option<Spoilt>;

const KINDS: [(&str, Spoil); 19] = [
    ("misspelt key", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        let word = random.pick_if(&line.words())?.clone();
        let (right, wrong) = (&line.text[word.clone()], random.misspell(&line.text[word.clone()]));
        let text = format!("{}{wrong}{}", &line.text[..word.start], &line.text[word.end..]);
        Some(good.with(line.at, &text).says(&["unknown key", &wrong]).hints(format!("did you mean '{right}'?")))
    }),
    ("misspelt table", |good, random| {
        let headers: Vec<&Line<'_>> = good.lines.iter().filter(|line| line.is_header).collect();
        let line = random.pick(&headers);
        let parts: Vec<&str> = line.table.split('.').filter(|part| part.len() > 2).collect();
        let right = *random.pick_if(&parts)?;
        let wrong = random.misspell(right);
        let spoilt = good.with(line.at, &line.text.replacen(right, &wrong, 1)).says(&[&wrong]);
        // A table array may be begun several times: the first is the one that is told of.
        let several = headers.iter().filter(|other| other.table == line.table).count() > 1;
        (!several).then(|| spoilt.hints(format!("did you mean '{right}'?")))
    }),
    ("wrong type", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        Some(good.with(line.at, &line.with_value("[[1]]")).says(&[line.key()]))
    }),
    ("wrong unit", |good, random| {
        let quantity = |line: &&&Line<'_>| {
            line.value().starts_with('"') && line.value()[1..].starts_with(|c: char| c.is_ascii_digit())
        };
        let lines: Vec<_> = good.settings();
        let lines: Vec<_> = lines
            .iter()
            .filter(quantity)
            .filter(|line| !(matches!(line.key(), "name" | "about" | "kernel") || line.key().starts_with("net.")))
            .collect();
        let line = random.pick_if(&lines)?;
        let number = line.value().trim_matches('"').trim_end_matches(|c: char| !c.is_ascii_digit());
        let bad = format!("{number} {}", random.pick(&["parsecs", "mss", "gbitt", "per cent", "pakets"]));
        Some(good.with(line.at, &line.with_value(&format!("\"{bad}\""))).says(&[&bad]))
    }),
    ("out of range", |good, random| {
        let bad: &[(&str, &[&str])] = &[
            ("rtt", &["\"-1ms\"", "\"9000000ms\""]),
            ("delay", &["\"-5ms\"", "\"70s\""]),
            ("loss", &["\"101%\"", "\"-1%\""]),
            ("rate", &["\"1kbit\"", "\"0\"", "\"-3gbit\""]),
            ("queue", &["\"0 packets\"", "\"12\"", "\"0ms\""]),
            ("mtu", &["100", "70000"]),
            ("initcwnd", &["0", "-3", "5000000000"]),
            ("cwnd", &["0", "1.5"]),
            ("rto_min", &["0", "\"-10ms\""]),
            ("parallel", &["0", "100000"]),
            ("transactions", &["0", "-1", "10000000000"]),
            ("bytes", &["0", "\"-5MB\""]),
            ("seconds", &["\"0s\"", "\"-10s\""]),
            ("clients", &["0", "100000"]),
            ("request", &["0", "-1"]),
            ("response", &["0", "\"-1kB\""]),
            ("packets", &["0", "\"5%\""]),
            ("size", &["0", "70000"]),
            ("overhead", &["-1", "1000000"]),
        ];
        let settings = good.settings();
        let line = random.pick(&settings);
        let (key, values) = bad.iter().find(|(key, _)| *key == line.key())?;
        Some(good.with(line.at, &line.with_value(random.pick::<&str>(values))).says(&[key]))
    }),
    ("a number too large", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        let digits = "99999999999999999999999";
        Some(good.with(line.at, &line.with_value(digits)).says(&[digits]))
    }),
    ("a date", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        Some(good.with(line.at, &line.with_value("1979-05-27")).says(&["1979-05-27", "date"]))
    }),
    ("a key twice", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        let mut spoilt =
            good.with(line.at, &format!("{}\n{}", line.text, line.text)).says(&["duplicate key", line.key()]);
        spoilt.line += 1;
        Some(spoilt)
    }),
    ("two arms of one name", |good, random| {
        let names: Vec<_> = good.of_table("arm").into_iter().filter(|line| line.key() == "name").collect();
        let first = names.first()?;
        let line = random.pick_if(&names[1..])?;
        Some(good.with(line.at, first.text).says(&["two arms are named", first.value().trim_matches('"')]))
    }),
    ("cut off", |good, random| {
        let lines: Vec<_> = good.lines.iter().filter(|line| line.value().starts_with('"')).collect();
        let line = random.pick(&lines);
        let end = line.text.rfind('"').expect("a quote");
        let mut spoilt = good.with(line.at, "");
        let before: Vec<&str> = good.lines[..line.at].iter().map(|line| line.text).collect();
        spoilt.text = format!("{}\n{}", before.join("\n"), &line.text[..end]);
        Some(spoilt.says(&["not TOML", line.key()]))
    }),
    ("misspelt word", |good, random| {
        let settings = good.settings();
        let lines: Vec<_> = settings
            .iter()
            .filter(|line| matches!(line.key(), "kind" | "direction" | "distribution" | "model"))
            .collect();
        let line = random.pick_if(&lines)?;
        let right = line.value().trim_matches('"');
        if right.len() < 4 {
            let spoilt = good.with(line.at, &line.with_value("\"sideways\"")).says(&["sideways"]);
            return Some(spoilt.hints("known: "));
        }
        let wrong = random.misspell(right);
        let spoilt = good.with(line.at, &line.with_value(&format!("\"{wrong}\""))).says(&[&wrong]);
        Some(spoilt.hints(format!("did you mean '{right}'?")))
    }),
    ("both of two", |good, random| {
        let adds: &[(&str, &str, &str, bool)] = &[
            ("path", "rtt", "delay = \"1ms\"", true),
            ("path", "rate", "trace = [1, 2]", true),
            ("workload", "seconds", "bytes = \"1MB\"", false),
            ("workload", "bytes", "seconds = \"1s\"", true),
            ("workload", "transactions", "seconds = \"1s\"", false),
        ];
        let (table, key, add, at_added) = *random.pick(adds);
        let lines = good.of_table(table);
        let line = lines.iter().find(|line| line.key() == key)?;
        let is_stream = lines.iter().any(|line| line.value() == "\"stream\"");
        (is_stream || !add.starts_with("bytes")).then_some(())?;
        if lines.iter().any(|line| add.starts_with(&format!("{} =", line.key()))) {
            return None;
        }
        let mut spoilt = good.with(line.at, &format!("{}\n{add}", line.text)).says(&[key]);
        spoilt.line += usize::from(at_added);
        Some(spoilt)
    }),
    ("expects of an unknown arm", |good, random| {
        let lines = good.of_table("expect");
        let line = random.pick(&lines);
        let (arm, _) = line.key().rsplit_once('/')?;
        (arm.len() > 4).then_some(())?;
        let wrong = random.misspell(arm);
        let spoilt = good.with(line.at, &line.text.replacen(arm, &wrong, 1)).says(&["no arm is named", &wrong]);
        Some(spoilt.hints("did you mean '"))
    }),
    ("compares with an unknown arm", |good, random| {
        let lines = good.of_table("expect");
        let line = random.pick(&lines);
        let value = line.value().trim_matches('"');
        let (times, arm) = value.split_once("x ")?;
        (arm.len() > 3).then_some(())?;
        let wrong = random.misspell(arm);
        let text = line.with_value(&format!("\"{times}x {wrong}\""));
        Some(good.with(line.at, &text).says(&["no arm is named", &wrong]).hints("did you mean '"))
    }),
    ("no bound", |good, random| {
        let lines = good.of_table("expect");
        let line = random.pick(&lines);
        (!line.key().ends_with("verdict")).then_some(())?;
        let bad = *random.pick(&[">= fast", "soon", "5ms +- much", "= 3"]);
        let word = bad.trim_start_matches([' ', '>', '=']).rsplit(' ').next().unwrap_or(bad);
        Some(good.with(line.at, &line.with_value(&format!("\"{bad}\""))).says(&[word]))
    }),
    ("no sysctl", |good, random| {
        let lines: Vec<_> = good
            .lines
            .iter()
            .filter(|line| line.text.contains("\"net.ipv4.") && line.table != "expect" && line.table != "matrix")
            .collect();
        let line = random.pick_if(&lines)?;
        let wrong = random.pick(&["\"kernel.", "\"tcp.", "\"net..ipv4."]);
        let text = line.text.replacen("\"net.ipv4.", wrong, 1);
        Some(good.with(line.at, &text).says(&["is no network sysctl", &wrong[1..]]))
    }),
    ("junk", |good, random| {
        let settings = good.settings();
        let line = random.pick(&settings);
        let junk = *random.pick(&["@@@", "rtt 35ms", "<<<<<<< HEAD", "path: rtt"]);
        let mut spoilt = good.with(line.at, &format!("{}\n{junk}", line.text)).says(&["not TOML", junk]);
        spoilt.line += 1;
        Some(spoilt)
    }),
    ("something missing", |good, random| {
        let settings = good.settings();
        let needed = |line: &&&Line<'_>| match line.table {
            "" => line.key() == "name",
            "workload" => matches!(line.key(), "kind" | "response" | "size" | "total" | "buffered"),
            "arm" => line.key() == "name",
            _ => false,
        };
        let lines: Vec<_> = settings.iter().filter(needed).collect();
        let line = random.pick_if(&lines)?;
        let header = good.lines[..line.at].iter().rposition(|line| line.is_header);
        let mut spoilt = good.with(line.at, "").says(&[line.key(), "missing"]);
        spoilt.line = header.map_or(1, |header| header + 1);
        Some(spoilt)
    }),
    ("matrix", |good, random| {
        let lines = good.of_table("matrix");
        let line = lines.first().copied();
        let (at, before) = match line {
            Some(line) => (line.at, String::new()),
            // A file without a matrix gets one.
            None => (good.lines.len() - 1, format!("{}\n[matrix]\n", good.lines.last()?.text)),
        };
        let (add, says, hint) = *random.pick(&[
            ("initcwdn = [10, 20]", "'initcwdn'", "did you mean 'initcwnd'?"),
            ("sever.route.initcwnd = [10, 20]", "'sever'", "did you mean 'server'?"),
            ("initcwnd = 10", "must be a list", "initcwnd = [10, 20]"),
            ("initcwnd = [10, 10]", "10 twice", ""),
        ]);
        // Twice the same key is another mistake.
        let key = add.split(' ').next()?;
        if lines.iter().skip(1).any(|line| line.key() == key) {
            return None;
        }
        let mut spoilt = good.with(at, &format!("{before}{add}")).says(&[says]);
        spoilt.line += before.matches('\n').count();
        Some(if hint.is_empty() { spoilt } else { spoilt.hints(hint) })
    }),
];
