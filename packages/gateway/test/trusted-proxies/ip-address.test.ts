import { expect, test } from "vitest";
import { clientNetwork } from "../../src/index.ts";

test.each([
  { name: "an IPv4 address is its own", given: "192.0.2.1", want: "192.0.2.1" },
  { name: "an IPv4 address that is mapped into IPv6 is that of IPv4", given: "::ffff:192.0.2.1", want: "192.0.2.1" },
  { name: "an IPv6 address is that of its first 64 bits", given: "2001:db8:1:2:3:4:5:6", want: "2001:db8:1:2::/64" },
  { name: "zeros in the middle count", given: "2001:db8::5:6", want: "2001:db8:0:0::/64" },
  { name: "zeros at the front count", given: "::1", want: "0:0:0:0::/64" },
  { name: "zeros at the end count", given: "2001:db8:1::", want: "2001:db8:1:0::/64" },
  { name: "the path of a socket stays", given: "unix", want: "unix" },
])("the network of a client: $name", ({ given, want }) => {
  expect(clientNetwork(given)).toBe(want);
});
