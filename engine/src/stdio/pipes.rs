//! Our standard input and output, unbuffered.

use crate::application::{ApplicationInput, ApplicationOutput};
use crate::outlet::LineOutlet;
use std::fs::File;
use std::io;

/// Our standard input, unbuffered.
#[cfg(unix)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

/// Our standard output, unbuffered.
pub fn standard_output() -> io::Result<LineOutlet<File>> {
    Ok(LineOutlet::new(standard_output_file()?))
}

#[cfg(unix)]
fn standard_output_file() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_output_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// Our standard input and output as the lines of an application.
pub fn application_ends() -> io::Result<(ApplicationInput, ApplicationOutput)> {
    let input = ApplicationInput::new(Box::new(standard_input()?));
    Ok((input, ApplicationOutput::new(Box::new(standard_output_file()?))))
}

/// Waits until every writer of our standard input has closed it, whether or not everything was
/// read.
#[cfg(unix)]
pub(super) fn wait_for_hang_up() {
    use rustix::event::{PollFd, PollFlags, poll};
    let input = io::stdin();
    loop {
        let mut watched = [PollFd::new(&input, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(_) => return,
            Err(error) if error == rustix::io::Errno::INTR => {}
            Err(_) => loop {
                // Otherwise the end of the input is noticed when it is read.
                std::thread::park();
            },
        }
    }
}
