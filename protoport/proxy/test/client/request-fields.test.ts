import { expect, test } from "vitest";
import { readRequestFields } from "../../src/client/request-fields.ts";

test.each([
  { header: { "X-A": "1", "grpc-trace-bin": "AA" }, fields: ["grpc-trace-bin", "AA", "x-a", "1"], hasUserAgent: false },
  { header: { "Grpc-Timeout": "1S", "grpc-encoding": "gzip", te: "gzip" }, fields: [], hasUserAgent: false },
  { header: { "content-type": "text/html", "User-Agent": "a" }, fields: ["user-agent", "a"], hasUserAgent: true },
])("of the header $header, only $fields are sent", ({ header, fields, hasUserAgent }) => {
  expect(readRequestFields(header)).toEqual({ fields, hasUserAgent });
});
