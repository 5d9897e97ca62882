import { expect, test } from "vitest";
import { clientNetwork } from "../../../gateway/src/index.ts";

test.each([
  { name: "an IPv4 address is unchanged", address: "192.0.2.1", want: "192.0.2.1" },
  { name: "an IPv4 address mapped into IPv6 becomes IPv4", address: "::ffff:192.0.2.1", want: "192.0.2.1" },
  {
    name: "an IPv6 address is reduced to its first 64 bits",
    address: "2001:db8:1:2:3:4:5:6",
    want: "2001:db8:1:2::/64",
  },
  { name: "compressed zeros in the middle are expanded", address: "2001:db8::5:6", want: "2001:db8:0:0::/64" },
  { name: "compressed zeros at the start are expanded", address: "::1", want: "0:0:0:0::/64" },
  { name: "compressed zeros at the end are expanded", address: "2001:db8:1::", want: "2001:db8:1:0::/64" },
  { name: "a string that is not an IP address is unchanged", address: "unix", want: "unix" },
])("clientNetwork(): $name", ({ address, want }) => {
  expect(clientNetwork(address)).toBe(want);
});
