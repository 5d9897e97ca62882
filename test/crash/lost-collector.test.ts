import { expect, test } from "vitest";
import { OtlpSender, readOtlpSettings } from "../../src/telemetry/index.ts";
import { within } from "../support/deadline.ts";
import { quietLog } from "../support/operations/quiet-log.ts";
import { startOtlpReceiver } from "../support/telemetry/otlp-receiver.ts";

test("a message that a collector has refused five times is given up at once, so the next one can be sent", async () => {
  await using collector = await startOtlpReceiver();
  const { traces } = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  if (traces === undefined) throw new Error("traces are not exported");
  const refused = Promise.withResolvers<void>();
  collector.answer = (response) => {
    const isLast = collector.requests.length === 5;
    response.writeHead(503, isLast ? { "retry-after": "30" } : {}).end();
    if (isLast) refused.resolve();
  };
  const sent = new OtlpSender(traces, "traces", quietLog).send(new Uint8Array(0));
  await within(refused.promise, "the fifth attempt", 60_000);
  expect(await within(sent, "the end of the attempts", 15_000)).toBe(false);
  expect(collector.requests).toHaveLength(5);
}, 90_000);
