//! What runs beside a call, shared by every surface.
#![forbid(unsafe_code)]
