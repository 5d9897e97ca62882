import { expect, test } from "vitest";
import { exchangeHttp1, startKitchenSink } from "../../../../../testing/src/index.ts";

test("prettyJson does not change a string of ten megabytes", async () => {
  const fString = '"\n'.repeat(2_500_000);
  await using gateway = await startKitchenSink({
    readMaxBytes: 64 * 2 ** 20,
    rest: { service: () => ({ prettyJson: true }) },
  });
  const body = Buffer.from(JSON.stringify({ fString }));
  const response = await exchangeHttp1(gateway.address, {
    httpMethod: "POST",
    path: "/v1/sinks?pretty",
    header: [],
    body,
  });
  expect(response.httpStatus).toBe(200);
  const pretty = `{\n  "rpc": "Create",\n  "sink": {\n    "fString": ${JSON.stringify(fString)}\n  }\n}`;
  expect(String(response.body) === pretty).toBe(true);
});
