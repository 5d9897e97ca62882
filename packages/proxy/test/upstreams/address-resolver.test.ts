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

test("a connection lost during a lookup causes another after a second", async () => {
  const lookups: ((addresses: readonly { address: string }[]) => void)[] = [];
  const lookup = (): Promise<readonly { address: string }[]> => new Promise((resolve) => lookups.push(resolve));
  const address = "dns:orders.example:1";
  const settings = readUpstreamOptions({ addresses: address, resolveEveryMs: 5_000, lookup });
  const resolver = new AddressResolver([readUpstreamAddress(address)], settings, () => onChange?.());
  let onChange: (() => void) | undefined;
  const finish = (at: number): Promise<void> =>
    new Promise((resolve) => {
      onChange = resolve;
      lookups[at]?.([{ address: "192.0.2.1" }]);
    });
  /** Returns the number of lookups after a refresh. */
  const refreshAfter = (ms: number): number => {
    vi.advanceTimersByTime(ms);
    resolver.refresh();
    return lookups.length;
  };
  resolver.refresh();
  resolver.refreshSoon();
  await finish(0);
  expect([refreshAfter(999), refreshAfter(1)]).toEqual([1, 2]);
  await finish(1);
  expect([refreshAfter(4_999), refreshAfter(1)]).toEqual([2, 3]);
  await finish(2);
});
