//! krafka with apache-avro.

use clients::print;
use krafka::consumer::{AutoOffsetReset, IsolationLevel};
use krafka::{Kafka, Record};

#[tokio::main]
async fn main() {
    let servers = std::env::var("BRIDGE_KAFKA__BOOTSTRAP_SERVERS").unwrap();
    let kafka = Kafka::builder(servers).connect().await.unwrap();
    let keys: Vec<String> = std::env::args().skip(1).collect();
    if !keys.is_empty() {
        let producer = kafka.producer().build().await.unwrap();
        for key in keys {
            let _ = producer.send(Record::new("keys", "").key(key)).await.unwrap();
        }
        return;
    }
    // page
    let consumer = kafka
        .consumer("payouts")
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .isolation_level(IsolationLevel::ReadCommitted) // without: aborted bets, too
        .build()
        .await
        .unwrap();
    consumer.subscribe(["settlement.bets"]).await.unwrap();
    while let Some(record) = consumer.recv().await.unwrap() {
        let (key, value) = (record.key.unwrap(), record.value);
        // The client of the registry blocks.
        tokio::task::block_in_place(|| print(&key, value.as_deref()));
    }
    // /page
}
