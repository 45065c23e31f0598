-- Profit and loss by sport, league and currency, and settlements by minute, from the topics of the bridge.
--
-- ${BRIDGE_...} are the bridge's own variables: `envsubst` fills them in for Flink's SQL client, run.py does it
-- for PyFlink. Each statement ends with a semicolon at the end of a line, and no other line does.

SET 'table.local-time-zone' = 'UTC';
SET 'execution.checkpointing.interval' = '30 s';
-- A partition without bets must not hold back the watermark of the others.
SET 'table.exec.source.idle-timeout' = '30 s';

-- The last settlement of each bet: a bet that is settled again replaces what was there, in every sum below.
-- `value.avro-confluent.schema` has the fields that are read, in the order of the columns. It must give each
-- column's type exactly. Only what is read is kept in Flink's state.
CREATE TABLE bets (
  `betId` STRING NOT NULL,
  `selections` ARRAY<ROW<`sportId` BIGINT NOT NULL, `competitionId` BIGINT NOT NULL> NOT NULL>,
  `isRejected` BOOLEAN NOT NULL,
  `payout` DOUBLE NOT NULL,
  `amount` ROW<`currency` STRING, `value` BIGINT NOT NULL, `precision` BIGINT NOT NULL>,
  PRIMARY KEY (`betId`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${BRIDGE_TOPICS__PREFIX}.bets',
  'properties.bootstrap.servers' = '${BRIDGE_KAFKA__BOOTSTRAP_SERVERS}',
  'properties.isolation.level' = 'read_committed',
  'key.format' = 'raw',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '${BRIDGE_REGISTRY__URL}',
  'value.avro-confluent.schema' = '
    {"type": "record", "name": "SettledBet", "namespace": "settlement", "fields": [
      {"name": "betId", "type": "string"},
      {"name": "selections", "type": ["null", {"type": "array", "items":
        {"type": "record", "name": "SettledBetItem", "fields": [
          {"name": "sportId", "type": "long"},
          {"name": "competitionId", "type": "long"}
        ]}
      }]},
      {"name": "isRejected", "type": "boolean"},
      {"name": "payout", "type": "double"},
      {"name": "amount", "type": ["null",
        {"type": "record", "name": "BetAmount", "fields": [
          {"name": "currency", "type": ["null", "string"]},
          {"name": "value", "type": "long"},
          {"name": "precision", "type": "long"}
        ]}
      ]}
    ]}'
);

-- Every settlement of every bet, as it was published: an event, and not the state of a bet.
-- `settlementTime` is in microseconds. As TIMESTAMP, Flink would take them for milliseconds, of the year 58000.
-- An enum is a STRING only with a schema that lists its symbols; one that is newer becomes Unknown.
CREATE TABLE settlements (
  `betSettlement` STRING NOT NULL,
  `settlementTime` BIGINT NOT NULL,
  `settled` AS TO_TIMESTAMP_LTZ(`settlementTime` / 1000, 3),
  WATERMARK FOR `settled` AS `settled` - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '${BRIDGE_TOPICS__PREFIX}.bets',
  'properties.bootstrap.servers' = '${BRIDGE_KAFKA__BOOTSTRAP_SERVERS}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'scan.watermark.emit.strategy' = 'on-event',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '${BRIDGE_REGISTRY__URL}',
  'value.avro-confluent.schema' = '
    {"type": "record", "name": "SettledBet", "namespace": "settlement", "fields": [
      {"name": "betSettlement", "type": {"type": "enum", "name": "SettlementResult", "symbols": [
        "None", "Win", "Lose", "Refund", "HalfWin", "HalfLose", "CashOut", "PlaceWin", "Unknown"
      ], "default": "Unknown"}},
      {"name": "settlementTime", "type": "long"}
    ]}'
);

CREATE TABLE translations (
  `item` STRING NOT NULL,
  `translations` MAP<STRING NOT NULL, STRING NOT NULL> NOT NULL,
  PRIMARY KEY (`item`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${BRIDGE_TOPICS__PREFIX}.translations',
  'properties.bootstrap.servers' = '${BRIDGE_KAFKA__BOOTSTRAP_SERVERS}',
  'properties.isolation.level' = 'read_committed',
  'key.format' = 'raw',
  'value.format' = 'avro-confluent',
  'value.fields-include' = 'EXCEPT_KEY',
  'value.avro-confluent.url' = '${BRIDGE_REGISTRY__URL}'
);

-- The results: compacted topics, one record for each row, a tombstone for a row that is no more.
-- What changes more than once within a second is written once.
CREATE TABLE profit_and_loss (
  `sportId` BIGINT NOT NULL,
  `leagueId` BIGINT NOT NULL,
  `currency` STRING NOT NULL,
  `sport` STRING,
  `league` STRING,
  `bets` BIGINT NOT NULL,
  `stake` DECIMAL(38, 18),
  `payout` DECIMAL(38, 18),
  `profit` DECIMAL(38, 18),
  PRIMARY KEY (`sportId`, `leagueId`, `currency`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${BRIDGE_TOPICS__PREFIX}.profit-and-loss',
  'properties.bootstrap.servers' = '${BRIDGE_KAFKA__BOOTSTRAP_SERVERS}',
  'sink.buffer-flush.interval' = '1 s',
  'sink.buffer-flush.max-rows' = '10000',
  'key.format' = 'json',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '${BRIDGE_REGISTRY__URL}',
  'value.avro-confluent.subject' = '${BRIDGE_TOPICS__PREFIX}.profit-and-loss-value'
);

CREATE TABLE settlements_by_minute (
  `minute` TIMESTAMP(3) NOT NULL,
  `settlements` BIGINT NOT NULL,
  `won` BIGINT NOT NULL,
  `late` BIGINT NOT NULL,
  PRIMARY KEY (`minute`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${BRIDGE_TOPICS__PREFIX}.settlements-by-minute',
  'properties.bootstrap.servers' = '${BRIDGE_KAFKA__BOOTSTRAP_SERVERS}',
  'sink.buffer-flush.interval' = '1 s',
  'sink.buffer-flush.max-rows' = '10000',
  'key.format' = 'json',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '${BRIDGE_REGISTRY__URL}',
  'value.avro-confluent.subject' = '${BRIDGE_TOPICS__PREFIX}.settlements-by-minute-value'
);

-- A bet on one league counts there. The money of a bet on several cannot be divided among them: these bets have
-- rows of their own, with 0 as sportId and leagueId, and so have those without selections.
-- The stake is exact. A payout is a double with traces of arithmetic: rounded to 8 decimals (a half away from 0).
-- 19 digits before the point hold any 64-bit integer, and the difference still has 38 digits.
CREATE VIEW accepted AS
SELECT
  CASE WHEN CARDINALITY(ARRAY_DISTINCT(selections)) = 1 THEN selections[1].sportId ELSE 0 END AS sportId,
  CASE WHEN CARDINALITY(ARRAY_DISTINCT(selections)) = 1 THEN selections[1].competitionId ELSE 0 END AS leagueId,
  amount.currency AS currency,
  CAST(CAST(amount.`value` AS STRING) || 'E-' || CAST(amount.`precision` AS STRING) AS DECIMAL(37, 18)) AS stake,
  CAST(CAST(payout AS DECIMAL(27, 8)) AS DECIMAL(37, 18)) AS payout
FROM bets
WHERE NOT isRejected;

-- Money in an unknown currency is not added up: without a currency, bets are only counted.
CREATE VIEW profit_by_id AS
SELECT
  sportId,
  leagueId,
  COALESCE(currency, '') AS currency,
  COUNT(*) AS bets,
  SUM(CASE WHEN currency IS NOT NULL THEN stake END) AS stake,
  SUM(CASE WHEN currency IS NOT NULL THEN payout END) AS payout,
  SUM(CASE WHEN currency IS NOT NULL THEN stake - payout END) AS profit
FROM accepted
GROUP BY sportId, leagueId, COALESCE(currency, '');

CREATE VIEW names AS
SELECT item, translations['en'] AS name
FROM translations
WHERE item LIKE 'sport:%' OR item LIKE 'league:%';

-- A regular join: a name that comes later, or is corrected, corrects the row.
INSERT INTO profit_and_loss
SELECT p.sportId, p.leagueId, p.currency, s.name, l.name, p.bets, p.stake, p.payout, p.profit
FROM profit_by_id AS p
LEFT JOIN names AS s ON s.item = 'sport:' || CAST(p.sportId AS STRING)
LEFT JOIN names AS l ON l.item = 'league:' || CAST(p.leagueId AS STRING);

-- Flink's windows drop what comes after the watermark has passed their end. Here it is counted, as `late`, and
-- corrects the minute that it belongs to. Some senders write the year 1 for "not set": that is no minute. Nor is a
-- date-time beyond the year 9999, of which Flink makes NULL.
INSERT INTO settlements_by_minute
SELECT
  `minute`,
  COUNT(*),
  COUNT(*) FILTER (WHERE betSettlement = 'Win'),
  COUNT(*) FILTER (WHERE isLate)
FROM (
  SELECT
    betSettlement,
    CAST(FLOOR(settled TO MINUTE) AS TIMESTAMP(3)) AS `minute`,
    CURRENT_WATERMARK(settled) >= FLOOR(settled TO MINUTE) + INTERVAL '1' MINUTE AS isLate
  FROM settlements
  WHERE settlementTime BETWEEN 0 AND 253402300799999999
)
GROUP BY `minute`;
