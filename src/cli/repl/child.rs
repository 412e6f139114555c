//! Evaluation in a process of its own, so that a session outlives whatever a computation does: it can be interrupted, and
//! it may crash.

use crate::cli::failure::Failure;
use crate::cli::progress::is_watched;
use crate::cli::signals;
use iverson::value::{Array, Data, Value};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// From now on an interrupt ends a computation, not the session.
pub fn watch_interrupts() {
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        let handler: extern "C" fn(libc::c_int) = note;
        libc::signal(libc::SIGINT, handler as libc::sighandler_t);
    }
}

/// What `work` gives, computed in a child. Its failure is drawn there and comes back as text.
pub fn evaluate(work: impl FnOnce() -> Result<Value, Failure>) -> Result<Value, Failure> {
    let (mut reader, mut writer) = std::io::pipe().map_err(|e| Failure::message(format!("cannot start a computation: {e}")))?;
    INTERRUPTED.store(false, Ordering::SeqCst);
    // SAFETY: this process has no other thread that holds a lock: the main thread waits for this one.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(Failure::message(format!("cannot start a computation: {}", std::io::Error::last_os_error()))),
        0 => {
            signals::watch();
            // SAFETY: it ends with the session.
            #[cfg(target_os = "linux")]
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM)
            };
            drop(reader);
            let mut bytes = vec![];
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
                Ok(Ok(value)) => {
                    bytes.push(VALUE);
                    encode(&value, &mut bytes);
                }
                Ok(Err(failure)) => {
                    bytes.push(FAILURE);
                    bytes.extend(failure.text().unwrap_or_default().into_bytes());
                }
                // The panic has been printed.
                Err(_) => bytes.extend([FAILURE]),
            }
            let _ = writer.write_all(&bytes).and_then(|()| writer.flush());
            // SAFETY: nothing of the parent's is cleaned up here.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let mut bytes = vec![];
            let read = wait_for(&mut reader, child, &mut bytes);
            let mut status = 0;
            // SAFETY: the child is ours, and is waited for once.
            while unsafe { libc::waitpid(child, &mut status, 0) } == -1
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
            let signalled = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
            if INTERRUPTED.load(Ordering::SeqCst) || signalled == Some(libc::SIGINT) {
                if is_watched() {
                    // The progress of the child may stand on the line.
                    let _ = std::io::stderr().write_all(b"\r\x1b[K");
                }
                return Err(Failure::message("interrupted"));
            }
            if let Some(signal) = signalled {
                return Err(Failure::message(format!("the computation was ended by signal {signal}")));
            }
            read.map_err(|e| Failure::message(format!("the computation gave nothing: {e}")))?;
            match bytes.split_first() {
                Some((&VALUE, mut rest)) => decode(&mut rest).ok_or_else(|| Failure::message("the computation gave nothing")),
                Some((_, text)) => Err(Failure::Drawn(String::from_utf8_lossy(text).into_owned())),
                None => Err(Failure::message("the computation gave nothing")),
            }
        }
    }
}

/// All that the child writes. An interrupt that reaches this process alone ends the child.
fn wait_for(reader: &mut std::io::PipeReader, child: libc::pid_t, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut waiting = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor that is open.
        let ready = unsafe { libc::poll(&mut waiting, 1, 50) };
        if INTERRUPTED.load(Ordering::SeqCst) {
            // SAFETY: the child is ours and has not been waited for.
            unsafe { libc::kill(child, libc::SIGTERM) };
            return Ok(());
        }
        if ready > 0 {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

const VALUE: u8 = 0;
const FAILURE: u8 = 1;

fn encode(value: &Value, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>, n: usize| out.extend((n as u64).to_le_bytes());
    match value {
        Value::Scalar(lit) => {
            out.push(0);
            let mut array = Array::zeros(lit.scalar(), vec![]);
            array.data.set(0, *lit);
            encode_data(&array.data, out);
        }
        Value::Array(array) => {
            out.push(1);
            number(out, array.shape.len());
            array.shape.iter().for_each(|n| number(out, *n));
            encode_data(&array.data, out);
        }
        Value::Tuple(parts) => {
            out.push(2);
            number(out, parts.len());
            parts.iter().for_each(|part| encode(part, out));
        }
    }
}

fn encode_data(data: &Data, out: &mut Vec<u8>) {
    let mut begin = |kind: u8, count: usize| {
        out.push(kind);
        out.extend((count as u64).to_le_bytes());
    };
    match data {
        Data::F64(v) => {
            begin(0, v.len());
            v.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        Data::F32(v) => {
            begin(1, v.len());
            v.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        Data::I64(v) => {
            begin(2, v.len());
            v.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        Data::I32(v) => {
            begin(3, v.len());
            v.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        Data::Bool(v) => {
            begin(4, v.len());
            out.extend(v.iter().map(|x| *x as u8));
        }
    }
}

fn decode(bytes: &mut &[u8]) -> Option<Value> {
    Some(match take::<1>(bytes)?[0] {
        0 => Value::Scalar(Array::new(vec![], decode_data(bytes)?).get(&[])?),
        1 => {
            let axes = number(bytes)?;
            let shape = (0..axes).map(|_| number(bytes)).collect::<Option<_>>()?;
            Value::Array(Array::new(shape, decode_data(bytes)?))
        }
        _ => {
            let count = number(bytes)?;
            Value::Tuple((0..count).map(|_| decode(bytes)).collect::<Option<_>>()?)
        }
    })
}

fn decode_data(bytes: &mut &[u8]) -> Option<Data> {
    let kind = take::<1>(bytes)?[0];
    let count = number(bytes)?;
    Some(match kind {
        0 => Data::F64((0..count).map(|_| take(bytes).map(f64::from_le_bytes)).collect::<Option<_>>()?),
        1 => Data::F32((0..count).map(|_| take(bytes).map(f32::from_le_bytes)).collect::<Option<_>>()?),
        2 => Data::I64((0..count).map(|_| take(bytes).map(i64::from_le_bytes)).collect::<Option<_>>()?),
        3 => Data::I32((0..count).map(|_| take(bytes).map(i32::from_le_bytes)).collect::<Option<_>>()?),
        _ => Data::Bool((0..count).map(|_| take::<1>(bytes).map(|b| b[0] != 0)).collect::<Option<_>>()?),
    })
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    take(bytes).map(|b| u64::from_le_bytes(b) as usize)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}
