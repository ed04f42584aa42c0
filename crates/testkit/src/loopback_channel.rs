//! A platform on loopback: a real HTTP server that takes messages, remembers them, and misbehaves when asked to.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Longest time that one request may take to come in.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// Whether it takes a message of the same `Idempotency-Key` only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// It does.
    Taken,
    /// It knows no keys.
    Ignored,
}

/// What it does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// Takes it and answers with a receipt.
    Take,
    /// Takes it and cuts the connection before any answer.
    TakeThenDrop,
    /// Takes it and answers with something that is no receipt.
    TakeThenGarble,
    /// Answers with this status and takes nothing.
    Answer(u16),
    /// Answers `429` with `Retry-After` of this many seconds and takes nothing.
    Busy(u32),
    /// Holds it until [`LoopbackChannel::release`], then takes it.
    Hang,
}

/// A message as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Posted {
    /// Its `Idempotency-Key`.
    pub key: String,
    /// Its body.
    pub body: Value,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Posted {
    /// Its words.
    pub fn text(&self) -> &str {
        self.body.pointer("/text").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it only says how work goes.
    pub fn is_transient(&self) -> bool {
        self.body.pointer("/transient").and_then(Value::as_bool).unwrap_or(false)
    }

    fn edits(&self) -> Option<&str> {
        self.body.pointer("/edits").and_then(Value::as_str)
    }

    /// The peer and thread that it is for.
    pub fn place(&self) -> (&str, Option<&str>) {
        let part = |name: &str| self.body.pointer(name).and_then(Value::as_str);
        (part("/conversation/peer").unwrap_or_default(), part("/conversation/thread"))
    }
}

/// A post as it stands there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its words, after every edit.
    pub text: String,
    /// The message that its thread is under.
    pub under: Option<String>,
    /// Whether it only says how work goes.
    pub transient: bool,
    /// How often it was edited.
    pub edits: usize,
}

/// What else it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skills {
    /// It edits what it has.
    pub edits: bool,
    /// It has threads under messages.
    pub threads: bool,
}

#[derive(Debug, Default)]
struct Kept {
    conduct: VecDeque<Conduct>,
    requests: Vec<Posted>,
    /// What was taken, in order, each with its receipt.
    taken: Vec<(Posted, String)>,
    /// Edits of what was taken, in order: the receipt, and how it reads from then on.
    edited: Vec<(String, Posted)>,
    released: bool,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    keys: Keys,
    skills: Skills,
    kept: Mutex<Kept>,
    changed: Condvar,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running platform. It ends when it is dropped.
#[derive(Debug)]
pub struct LoopbackChannel {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl LoopbackChannel {
    /// Starts one on a free port.
    pub fn start(keys: Keys) -> std::io::Result<Self> {
        Self::with_skills(keys, Skills::default())
    }

    /// Starts one that can do more.
    pub fn with_skills(keys: Keys, skills: Skills) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { keys, skills, kept: Mutex::default(), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.kept().closed {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&serving);
                // A peer that cuts the connection, as a daemon does that is killed, is none of its business.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Its section of the configuration, under this name.
    pub fn config(&self, name: &str) -> String {
        let takes_key = self.shared.keys == Keys::Taken;
        let Skills { edits, threads } = self.shared.skills;
        format!(
            "[channels.{name}]\nkind = \"webhook\"\nurl = \"http://{}/in\"\ntakesKey = {takes_key}\nedits = {edits}\nthreads = {threads}\n",
            self.address
        )
    }

    /// What it does with the next requests, in order; afterwards it takes everything.
    pub fn conduct(&self, next: &[Conduct]) {
        self.shared.kept().conduct.extend(next);
    }

    /// Lets go what hangs, now and later.
    pub fn release(&self) {
        self.shared.kept().released = true;
        self.shared.changed.notify_all();
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Posted> {
        self.shared.kept().requests.clone()
    }

    /// What it has, in the order of its arrival.
    pub fn taken(&self) -> Vec<Posted> {
        self.shared.kept().taken.iter().map(|(posted, _)| posted.clone()).collect()
    }

    /// What it shows, in the order of its arrival.
    pub fn standing(&self) -> Vec<Standing> {
        let kept = self.shared.kept();
        let standing = |(posted, receipt): &(Posted, String)| {
            let edits: Vec<&Posted> =
                kept.edited.iter().filter(|(of, _)| of == receipt).map(|(_, posted)| posted).collect();
            let under = posted.body.pointer("/under").and_then(Value::as_str).map(str::to_owned);
            let text = edits.last().map_or(posted.text(), |last| last.text()).to_owned();
            Standing { text, under, transient: posted.is_transient(), edits: edits.len() }
        };
        kept.taken.iter().map(standing).collect()
    }

    /// First lines of what it has in one thread.
    pub fn thread(&self, peer: &str, thread: Option<&str>) -> Vec<String> {
        let of_thread = |posted: &Posted| posted.place() == (peer, thread);
        let first = |posted: &Posted| posted.text().lines().next().unwrap_or_default().to_owned();
        self.taken().iter().filter(|posted| of_thread(posted)).map(first).collect()
    }
}

impl Drop for LoopbackChannel {
    fn drop(&mut self) {
        self.shared.kept().closed = true;
        self.release();
        // Wakes the one that waits for connections; when that fails, it ends with the process.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_PATIENCE))?;
    let Some(posted) = read(&stream)? else { return Ok(()) };
    let conduct = {
        let mut kept = shared.kept();
        kept.requests.push(posted.clone());
        kept.conduct.pop_front().unwrap_or(Conduct::Take)
    };
    match conduct {
        Conduct::Take => {
            let receipt = take(posted, shared);
            answer(&mut stream, "200 OK", "", &json!({ "id": receipt }).to_string())
        }
        Conduct::TakeThenDrop => {
            take(posted, shared);
            stream.shutdown(Shutdown::Both)
        }
        Conduct::TakeThenGarble => {
            take(posted, shared);
            answer(&mut stream, "200 OK", "", "<html>thank you</html>")
        }
        Conduct::Answer(status) => answer(&mut stream, &format!("{status} As Asked"), "", "no"),
        Conduct::Busy(seconds) => {
            answer(&mut stream, "429 Too Many Requests", &format!("Retry-After: {seconds}\r\n"), "later")
        }
        Conduct::Hang => {
            let mut kept = shared.kept();
            while !kept.released {
                kept = shared.changed.wait(kept).unwrap_or_else(PoisonError::into_inner);
            }
            drop(kept);
            let receipt = take(posted, shared);
            answer(&mut stream, "200 OK", "", &json!({ "id": receipt }).to_string())
        }
    }
}

/// Takes a message; the same key again is the same message where keys are taken.
fn take(posted: Posted, shared: &Shared) -> String {
    let mut kept = shared.kept();
    if let Some(receipt) = posted.edits().map(str::to_owned) {
        kept.edited.push((receipt.clone(), posted));
        return receipt;
    }
    let known = kept.taken.iter().find(|(before, _)| before.key == posted.key);
    if let (Some((_, receipt)), Keys::Taken) = (known, shared.keys) {
        return receipt.clone();
    }
    let receipt = format!("receipt-{}", kept.taken.len() + 1);
    kept.taken.push((posted, receipt.clone()));
    receipt
}

/// One request with its body; `None` where the peer sent none.
fn read(stream: &TcpStream) -> std::io::Result<Option<Posted>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_usize);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let key = headers.get("idempotency-key").cloned().unwrap_or_default();
    Ok(Some(Posted { key, body: serde_json::from_slice(&body).unwrap_or(Value::Null), headers }))
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}
