import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AddressResolver } from "../../src/upstreams/address-resolver.ts";
import { readUpstreamAddress } from "../../src/upstreams/upstream-address.ts";
import { readUpstreamOptions } from "../../src/upstreams/upstream-options.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test.each([
  { name: "fails", next: () => Promise.reject(new Error("EAI_AGAIN")), problem: "EAI_AGAIN" },
  { name: "returns no address", next: () => Promise.resolve([]), problem: "no address found" },
])("if a lookup $name, a host name keeps its addresses", async ({ next, problem }) => {
  const lookups = [() => Promise.resolve([{ address: "192.0.2.1" }]), next];
  const lookup = vi.fn(() => lookups.shift()?.() ?? Promise.resolve([]));
  const address = "dns:orders.example:1";
  let onChange: (() => void) | undefined;
  const settings = readUpstreamOptions({ addresses: address, resolveEveryMs: 1, lookup });
  const resolver = new AddressResolver([readUpstreamAddress(address)], settings, () => onChange?.());
  const refresh = (): Promise<void> =>
    new Promise((resolve) => {
      onChange = resolve;
      resolver.refresh();
    });
  const targets = (): unknown => [...resolver.addresses.values()].map(({ target }) => target);
  await refresh();
  expect([targets(), resolver.problem]).toEqual([[{ host: "192.0.2.1", port: 1 }], undefined]);
  vi.advanceTimersByTime(1);
  await refresh();
  expect(lookup).toHaveBeenCalledTimes(2);
  expect(resolver.problem?.rawMessage).toBe(`cannot look up orders.example: ${problem}`);
  expect(targets()).toEqual([{ host: "192.0.2.1", port: 1 }]);
});

test("a connection lost during a lookup causes another lookup after a second", async () => {
  const lookups: ((addresses: readonly { address: string }[]) => void)[] = [];
  const lookup = (): Promise<readonly { address: string }[]> => new Promise((resolve) => lookups.push(resolve));
  const address = "dns:orders.example:1";
  const changed = Promise.withResolvers<void>();
  const settings = readUpstreamOptions({ addresses: address, lookup });
  const resolver = new AddressResolver([readUpstreamAddress(address)], settings, changed.resolve);
  resolver.refresh();
  resolver.refreshSoon();
  lookups[0]?.([{ address: "192.0.2.1" }]);
  await changed.promise;
  vi.advanceTimersByTime(999);
  resolver.refresh();
  expect(lookups.length).toBe(1);
  vi.advanceTimersByTime(1);
  resolver.refresh();
  expect(lookups.length).toBe(2);
  lookups[1]?.([{ address: "192.0.2.1" }]);
});
