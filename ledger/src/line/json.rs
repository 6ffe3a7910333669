//! Records as JSON, straight into a line: what `serde_json` writes, in a third of its time.
//!
//! It takes what records are made of, structures, texts, numbers and lists. Anything else is an error.

use crate::digits;
use serde::ser::{Error as _, Impossible, Serialize, SerializeSeq, SerializeStruct, Serializer};
use serde_json::Error;

/// Appends a value to `out`.
pub(super) fn write(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Json { out })
}

/// A place for one value.
struct Json<'o> {
    out: &'o mut Vec<u8>,
}

/// The inside of a list or a structure.
struct Inside<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl Inside<'_> {
    #[inline(always)]
    fn comma(&mut self) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
    }
}

fn none_of_a_record<T>() -> Result<T, Error> {
    Err(Error::custom("a value that no record has"))
}

macro_rules! no_value {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<(), Error> {
            none_of_a_record()
        })*
    };
}

impl<'o> Serializer for Json<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'o>;
    type SerializeStruct = Inside<'o>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    /// The caller passes bytes, and their digits are written here: nothing has to look for escapes in them.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.out.push(b'"');
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            self.out.extend_from_slice(&digits::encode::<16, 32>(block));
        }
        for byte in rest {
            self.out.extend_from_slice(&digits::encode::<1, 2>(&[*byte]));
        }
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        digits::push_decimal(value, self.out);
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        // Looks at all bytes, also after one that needs an escape: so the compiler takes many at a time.
        let needs_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
        if text.bytes().fold(false, |any, byte| any | needs_escape(byte)) {
            return serde_json::to_writer(self.out, text);
        }
        self.out.reserve(text.len() + 2);
        self.out.push(b'"');
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        // Names of variants are ours, as those of members are, and need no escapes.
        self.out.extend_from_slice(b"\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\"");
        Ok(())
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'o>, Error> {
        self.out.push(b'[');
        Ok(Inside { out: self.out, is_first: true })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'o>, Error> {
        self.out.push(b'{');
        Ok(Inside { out: self.out, is_first: true })
    }

    no_value!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_u16: u16,
        serialize_u32: u32, serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_unit_struct: &'static str
    );

    fn serialize_unit(self) -> Result<(), Error> {
        none_of_a_record()
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        none_of_a_record()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        none_of_a_record()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        none_of_a_record()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        none_of_a_record()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        none_of_a_record()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        none_of_a_record()
    }
}

impl SerializeSeq for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.comma();
        value.serialize(Json { out: self.out })
    }

    fn end(self) -> Result<(), Error> {
        self.out.push(b']');
        Ok(())
    }
}

impl SerializeStruct for Inside<'_> {
    type Ok = ();
    type Error = Error;

    /// Names of members are ours and need no escapes. Inlined, their lengths are known and copying them costs nothing.
    #[inline(always)]
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.comma();
        self.out.reserve(name.len() + 3);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Json { out: self.out })
    }

    fn end(self) -> Result<(), Error> {
        self.out.push(b'}');
        Ok(())
    }
}
