//! Decodes values with apache-avro, and prints them.

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::{Schema, types::Value};
use serde_json::{Map, Value as Json, json};

// page
pub fn decode(value: &[u8]) -> Value {
    let id = u32::from_be_bytes(value[1..5].try_into().unwrap());
    let url = format!(
        "{}/schemas/ids/{id}",
        std::env::var("BRIDGE_REGISTRY__URL").unwrap()
    );
    let answer: Json = ureq::get(url).call().unwrap().body_mut().read_json().unwrap();
    let schema = Schema::parse_str(answer["schema"].as_str().unwrap()).unwrap();
    GenericDatumReader::builder(&schema)
        .build()
        .unwrap()
        .read_value(&mut &value[5..])
        .unwrap()
}
// /page

pub fn print(key: &[u8], value: Option<&[u8]>) {
    let bet = value.map(|value| plain(decode(value)));
    println!("{}", json!({"key": String::from_utf8_lossy(key), "value": bet}));
}

fn plain(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(it) => it.into(),
        Value::Long(it) | Value::TimestampMicros(it) => it.into(),
        Value::Double(it) => it.into(),
        Value::String(it) | Value::Enum(_, it) => it.into(),
        Value::Union(_, it) => plain(*it),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Map(entries) => entries
            .into_iter()
            .map(|(name, it)| (name, plain(it)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Record(fields) => fields
            .into_iter()
            .map(|(name, it)| (name, plain(it)))
            .collect::<Map<_, _>>()
            .into(),
        other => panic!("{other:?} is not in a bet"),
    }
}
