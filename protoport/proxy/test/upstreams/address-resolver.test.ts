import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AddressResolver } from "../../src/upstreams/address-resolver.ts";
import { readUpstreamAddress } from "../../src/upstreams/upstream-address.ts";
import { maxServers } from "../../src/upstreams/upstream-limits.ts";
import { readUpstreamOptions, type UpstreamOptions } from "../../src/upstreams/upstream-options.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Opens a resolver for addresses. `changed` resolves when the lookups that an action causes have ended. */
function openResolver(addresses: readonly string[], options: Pick<UpstreamOptions, "resolveEveryMs" | "lookup">) {
  let onChange: (() => void) | undefined;
  const settings = readUpstreamOptions({ addresses, ...options });
  const resolver = new AddressResolver(
    addresses.map((text) => readUpstreamAddress(text)),
    settings,
    () => onChange?.(),
  );
  const changed = (act: () => void): Promise<void> =>
    new Promise((resolve) => {
      onChange = resolve;
      act();
    });
  const targets = (): unknown[] => [...resolver.addresses.values()].map(({ target }) => target);
  return { resolver, changed, targets };
}

test.each([
  { name: "fails", next: () => Promise.reject(new Error("EAI_AGAIN")), problem: "EAI_AGAIN" },
  { name: "returns no address", next: () => Promise.resolve([]), problem: "no address found" },
])("if a lookup $name, a host name keeps its addresses", async ({ next, problem }) => {
  const lookups = [() => Promise.resolve([{ address: "192.0.2.1" }]), next];
  const lookup = vi.fn(() => lookups.shift()?.() ?? Promise.resolve([]));
  const { resolver, changed, targets } = openResolver(["dns:orders.example:1"], { resolveEveryMs: 1, lookup });
  await changed(() => resolver.refresh());
  expect([targets(), resolver.problem]).toEqual([[{ host: "192.0.2.1", port: 1 }], undefined]);
  vi.advanceTimersByTime(1);
  await changed(() => resolver.refresh());
  expect(lookup).toHaveBeenCalledTimes(2);
  expect(resolver.problem?.rawMessage).toBe(`cannot look up orders.example: ${problem}`);
  expect(targets()).toEqual([{ host: "192.0.2.1", port: 1 }]);
});

test("a connection lost during a lookup causes another after a second", async () => {
  const lookups: ((addresses: readonly { address: string }[]) => void)[] = [];
  const lookup = (): Promise<readonly { address: string }[]> => new Promise((resolve) => lookups.push(resolve));
  const { resolver, changed } = openResolver(["dns:orders.example:1"], { resolveEveryMs: 5_000, lookup });
  const finish = (at: number): Promise<void> => changed(() => lookups[at]?.([{ address: "192.0.2.1" }]));
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

test("a resolver keeps the addresses' order and each name's port", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  const texts = ["dns:a.example:1", "http://192.0.2.9:2", "dns:b.example:3"];
  const ends = new Map([
    ["a.example", ["192.0.2.1", "192.0.2.2"]],
    ["b.example", ["192.0.2.1"]],
  ]);
  const lookup = async (host: string): Promise<readonly { address: string }[]> => {
    const found = ends.get(host);
    if (found === undefined) throw new Error("ENOTFOUND");
    return found.map((address) => ({ address }));
  };
  const { resolver, changed, targets } = openResolver(texts, { resolveEveryMs: 10_000, lookup });
  const resolveAfter = async (ms: number): Promise<readonly unknown[]> => {
    vi.advanceTimersByTime(ms);
    await changed(() => resolver.refresh());
    return targets();
  };
  const fixed = { host: "192.0.2.9", port: 2 };
  const first = [{ host: "192.0.2.1", port: 1 }, { host: "192.0.2.2", port: 1 }, fixed];
  const last = { host: "192.0.2.1", port: 3 };
  expect([targets(), await resolveAfter(0)]).toEqual([[fixed], [...first, last]]);
  ends.delete("a.example");
  ends.set("b.example", ["192.0.2.4"]);
  expect(await resolveAfter(10_000)).toEqual([...first, { ...last, host: "192.0.2.4" }]);
  expect(resolver.problem?.rawMessage).toBe("cannot look up a.example: ENOTFOUND");
  ends.set(
    "a.example",
    Array.from({ length: maxServers + 1 }, (_, at) => `2001:db8::${at.toString(16)}`),
  );
  // After a failure, the names are resolved after a second, ±20 %.
  expect(await resolveAfter(1_200)).toHaveLength(maxServers);
  expect([resolver.problem, vi.getTimerCount()]).toEqual([undefined, 0]);
});
