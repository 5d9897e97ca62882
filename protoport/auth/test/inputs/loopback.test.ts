import { expect, test } from "vitest";
import { isLoopback } from "../../src/inputs/loopback.ts";

const loopback = "127.0.0.1 127.255.255.254 ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 localhost LOCALHOST unix:/run/s";

test.each(loopback.split(" "))("%s is a loopback host", (host) => expect(isLoopback(host)).toBe(true));

test.each(
  // oxfmt-ignore
  [
    "0.0.0.0", "::", "::ffff:0.0.0.0", "128.0.0.1", "10.0.0.1", "localhost.example", "127.0.0.1.example", "example", "",
    "127.1",
  ],
)("%j is not a loopback host", (host) => expect(isLoopback(host)).toBe(false));
