import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { DescriptorReader, type ReadDescriptors } from "../../src/forward/descriptor-reader.ts";

test("concurrent reads report a late result once", async () => {
  const source = Promise.withResolvers<Uint8Array>();
  let lateResults = 0;
  const reader = new DescriptorReader(
    () => source.promise,
    async (set) => ({ set, descriptors: undefined }),
    () => void (lateResults += 1),
  );
  const { signal } = new AbortController();
  const limits = { read: Promise.resolve(), describe: new Promise<never>(() => undefined), ms: 1 };
  await Promise.all([reader.read(signal, limits), reader.read(signal, limits)]);
  source.resolve(Uint8Array.of(1));
  expect(await reader.read(signal, { ...limits, read: limits.describe })).toMatchObject({ set: Uint8Array.of(1) });
  expect(lateResults).toBe(1);
});

test("a result that arrives after the timeout is used by the next read", async () => {
  const resolvers: ((set: Uint8Array) => void)[] = [];
  const late = Promise.withResolvers<void>();
  const reader = new DescriptorReader(
    () => new Promise((resolve) => void resolvers.push(resolve)),
    async (set) => ({ set, descriptors: undefined }),
    late.resolve,
  );
  const never = new Promise<never>(() => undefined);
  const read = (limit: Promise<unknown>): Promise<ReadDescriptors | Error> =>
    reader.read(new AbortController().signal, { read: limit, describe: never, ms: 5_000 });
  expect(await read(Promise.resolve())).toMatchObject({
    code: Code.DeadlineExceeded,
    rawMessage: "reading the descriptors timed out after 5000 ms",
  });
  resolvers[0]?.(Uint8Array.of(1));
  await late.promise;
  expect(await read(never)).toEqual({ set: Uint8Array.of(1), descriptors: undefined });
  const next = read(never);
  resolvers[1]?.(Uint8Array.of(2));
  expect(await next).toEqual({ set: Uint8Array.of(2), descriptors: undefined });
});
