import { expect, test } from "vitest";
import { clientNetwork } from "../../../src/index.ts";

test.each([
  { name: "keeps an IPv4 address", address: "192.0.2.1", want: "192.0.2.1" },
  { name: "converts an IPv4-mapped IPv6 address to IPv4", address: "::ffff:192.0.2.1", want: "192.0.2.1" },
  { name: "reduces an IPv6 address to its first 64 bits", address: "2001:db8:1:2:3:4:5:6", want: "2001:db8:1:2::/64" },
  { name: "expands compressed zeros in the middle", address: "2001:db8::5:6", want: "2001:db8:0:0::/64" },
  { name: "expands compressed zeros at the start", address: "::1", want: "0:0:0:0::/64" },
  { name: "expands compressed zeros at the end", address: "2001:db8:1::", want: "2001:db8:1:0::/64" },
  { name: "keeps a string that is not an IP address", address: "unix", want: "unix" },
])("clientNetwork() $name", ({ address, want }) => expect(clientNetwork(address)).toBe(want));
