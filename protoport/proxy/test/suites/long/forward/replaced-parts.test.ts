import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { exchangeFetch } from "@protoport/testing";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { LibraryService, respondWatered, type ScriptedConnection, startScriptedServer } from "@protoport/testing/proxy";
import { createProxy, type DescriptorSource, type ProxyGateway } from "../../../../src/create-proxy.ts";

const replacements = 10;
const greenhouse = descriptorSetOf(GreenhouseService.file);
const library = descriptorSetOf(LibraryService.file);

/** Waters a bed, and returns the status. */
async function water({ fetch }: ProxyGateway, note: string = ""): Promise<number> {
  const response = await exchangeFetch(fetch, {
    httpMethod: "POST",
    path: "/beds/7:water",
    header: [["content-type", "application/json"]],
    body: Buffer.from(JSON.stringify({ note })),
  });
  return response.httpStatus;
}

/** A descriptor source that counts its reads and watches. */
interface CountingSource extends DescriptorSource {
  set: Uint8Array;
  readonly reads: number;
  readonly watches: number;
  /** Reports a change, even to a watch that has ended. */
  change(): void;
}

function createSource(): CountingSource {
  let [reads, watches] = [0, 0];
  let report: (() => void) | undefined;
  return {
    set: greenhouse,
    get reads() {
      return reads;
    },
    get watches() {
      return watches;
    },
    change: () => report?.(),
    read() {
      reads++;
      return Promise.resolve(this.set);
    },
    watch(changed) {
      watches++;
      report = changed;
      return () => void watches--;
    },
  };
}

test("after ten reconfigure calls, only the last descriptor source is watched", async () => {
  const upstream = "http://127.0.0.1:1";
  const sources = Array.from({ length: replacements + 1 }, createSource);
  const [first, ...others] = sources;
  const last = others.at(-1);
  if (first === undefined || last === undefined) throw new Error("no source was opened");
  const proxy = await createProxy({ upstreams: [{ upstream, descriptors: first }] });
  for (const descriptors of others) await proxy.reconfigure({ upstreams: [{ upstream, descriptors }] });
  expect(sources.map(({ watches }) => watches)).toEqual([...Array<number>(replacements).fill(0), 1]);
  const readsBefore = sources.map(({ reads }) => reads);
  for (const source of sources) source.set = library;
  for (const source of sources) source.change();
  await expect.poll(() => proxy.services.map(({ typeName }) => typeName)).toEqual([LibraryService.typeName]);
  last.set = greenhouse;
  last.change();
  await expect.poll(() => proxy.services.map(({ typeName }) => typeName)).toEqual([GreenhouseService.typeName]);
  expect(sources.map(({ reads }, at) => reads - (readsBefore[at] ?? 0))).toEqual([
    ...Array<number>(replacements).fill(0),
    2,
  ]);
  await proxy.close();
  expect(last.watches).toBe(0);
});

test("after several reconfigure calls, only the last upstream has a connection", async () => {
  const connections: ScriptedConnection[] = [];
  await using old = await startScriptedServer(respondWatered);
  await using current = await startScriptedServer({
    request: (connection, id) => {
      connections.push(connection);
      respondWatered.request?.(connection, id);
    },
  });
  const upstreamsOf = (upstream: string) => ({ upstreams: [{ upstream, descriptors: greenhouse }] });
  const proxy = await createProxy(upstreamsOf(old.baseUrl));
  for (let at = 0; at < replacements; at++) {
    expect(await water(proxy)).toBe(200);
    await proxy.reconfigure(upstreamsOf((at % 2 === 0 ? current : old).baseUrl));
  }
  await proxy.reconfigure(upstreamsOf(current.baseUrl));
  expect(await water(proxy)).toBe(200);
  await expect.poll(() => [old.open, current.open]).toEqual([0, 1]);
  const { connections: oldConnections } = old;
  connections.at(-1)?.socket.destroy();
  await expect.poll(() => current.open).toBe(0);
  expect(await water(proxy)).toBe(200);
  expect([old.open, old.connections, current.open]).toEqual([0, oldConnections, 1]);
  await proxy.close();
});
