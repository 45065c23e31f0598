//! rdkafka with apache-avro.

use clients::print;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

fn main() {
    let servers = std::env::var("BRIDGE_KAFKA__BOOTSTRAP_SERVERS").unwrap();
    let keys: Vec<String> = std::env::args().skip(1).collect();
    if !keys.is_empty() {
        let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
            .set("bootstrap.servers", &servers)
            .set("partitioner", "murmur2_random") // without: CRC32
            .create()
            .unwrap();
        for key in &keys {
            producer
                .send(BaseRecord::<str, [u8]>::to("keys").key(key))
                .unwrap();
        }
        producer.flush(std::time::Duration::from_secs(30)).unwrap();
        return;
    }
    // page
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &servers)
        .set("group.id", "payouts")
        .set("auto.offset.reset", "earliest")
        .create()
        .unwrap();
    consumer.subscribe(&["settlement.bets"]).unwrap();
    for record in &consumer {
        let record = record.unwrap();
        print(record.key().unwrap(), record.payload());
    }
    // /page
}
