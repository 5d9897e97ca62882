import { expect, test } from "vitest";
import { exchangeHttp1, startKitchenSink } from "@protoport/testing";

test("prettyJson does not change a string of ten megabytes", async () => {
  const fString = '"\n'.repeat(2_500_000);
  const rest = { service: () => ({ prettyJson: true }) };
  await using gateway = await startKitchenSink({ readMaxBytes: 64 * 2 ** 20, rest });
  const body = Buffer.from(JSON.stringify({ fString }));
  const request = { httpMethod: "POST", path: "/v1/sinks?pretty", header: [], body };
  const response = await exchangeHttp1(gateway.address, request);
  expect(response.httpStatus).toBe(200);
  const pretty = `{\n  "rpc": "Create",\n  "sink": {\n    "fString": ${JSON.stringify(fString)}\n  }\n}`;
  expect(String(response.body) === pretty).toBe(true);
});
