//! rskafka with apache-avro.

use clients::print;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::UnknownTopicHandling::Retry;

#[tokio::main]
async fn main() {
    let servers = vec![std::env::var("BRIDGE_KAFKA__BOOTSTRAP_SERVERS").unwrap()];
    let client = ClientBuilder::new(servers).build().await.unwrap();
    let partition = client
        .partition_client("settlement.bets", 0, Retry)
        .await
        .unwrap();
    let mut next = 0;
    loop {
        let (records, _) = partition.fetch_records(next, 1..1_000_000, 1_000).await.unwrap();
        for found in records {
            next = found.offset + 1;
            tokio::task::block_in_place(|| print(&found.record.key.unwrap(), found.record.value.as_deref()));
        }
    }
}
