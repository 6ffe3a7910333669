use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

struct Chain {
    is_asked: AtomicBool,
    tended: Sender<()>,
    panics: bool,
    failures: AtomicUsize,
}

impl Tended for Chain {
    fn take_asked(&self) -> bool {
        self.is_asked.swap(false, Ordering::SeqCst)
    }

    fn tend(&self) {
        assert!(!self.panics, "a test panics here");
        let _ = self.tended.send(());
    }

    fn fail(&self, _: &str) {
        self.failures.fetch_add(1, Ordering::SeqCst);
        let _ = self.tended.send(());
    }
}

fn add(worker: &Worker, id: u64, panics: bool, tended: Sender<()>) -> Arc<Chain> {
    let (is_asked, failures) = (AtomicBool::new(false), AtomicUsize::new(0));
    let chain = Arc::new(Chain { is_asked, tended, panics, failures });
    let weak: Weak<Chain> = Arc::downgrade(&chain);
    worker.add(id, weak).unwrap();
    chain
}

fn ask(worker: &Worker, chain: &Chain) {
    chain.is_asked.store(true, Ordering::SeqCst);
    worker.ask();
}

#[test]
fn a_panic_for_one_chain_ends_that_chain_and_the_others_are_looked_after() {
    let worker = Worker::start().unwrap();
    let (broken_tended, broken_is_tended) = channel();
    let (sound_tended, sound_is_tended) = channel();
    let broken = add(&worker, 1, true, broken_tended);
    let sound = add(&worker, 2, false, sound_tended);
    for _ in 0..2 {
        ask(&worker, &broken);
        broken_is_tended.recv().unwrap();
        ask(&worker, &sound);
        sound_is_tended.recv().unwrap();
    }
    assert!(broken.failures.load(Ordering::SeqCst) >= 2);
    assert_eq!(sound.failures.load(Ordering::SeqCst), 0);
}

#[test]
fn a_chain_is_looked_after_every_second_until_it_is_removed() {
    let worker = Worker::start().unwrap();
    let (tended, is_tended) = channel();
    let chain = add(&worker, 1, false, tended);
    is_tended.recv().unwrap();
    worker.remove(1);
    // No thread holds on to it, so it ends here.
    assert_eq!(Arc::strong_count(&chain), 1);
    drop(chain);
    assert!(is_tended.iter().count() <= 1);
}

#[test]
fn the_end_of_the_thread_for_the_disk_ends_all_chains() {
    let worker = Worker::start().unwrap();
    let (tended, is_tended) = channel();
    let chain = add(&worker, 1, false, tended);
    let poisoning = std::thread::spawn({
        let worker = worker.clone();
        move || {
            let _duty = worker.duty.lock().unwrap();
            panic!("a test panics here");
        }
    });
    assert!(poisoning.join().is_err());
    worker.ask();
    while chain.failures.load(Ordering::SeqCst) == 0 {
        is_tended.recv().unwrap();
    }
    let (tended, _) = channel();
    let weak: Weak<Chain> = Arc::downgrade(&Arc::new(Chain {
        tended,
        is_asked: AtomicBool::new(false),
        panics: false,
        failures: AtomicUsize::new(0),
    }));
    assert!(worker.add(2, weak).is_err());
    worker.remove(1);
}
