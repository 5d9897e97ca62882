import { expect, test } from "vitest";
import { toUrl } from "../../src/command/proxy-server.ts";

test.each([
  { address: "127.0.0.1", want: "http://127.0.0.1:8080" },
  { address: "::1", want: "http://[::1]:8080" },
])("toUrl returns $want for the address $address and port 8080", ({ address, want }) => {
  expect(toUrl("http", { address, port: 8080 })).toBe(want);
});
