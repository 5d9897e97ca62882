import { gzipSync } from "node:zlib";
import { Code, ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { CompletedRequest } from "../../src/fetch/entry.ts";
import { type Pull, pulledRequest, serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";
import { collectGarbage, retainedBytes, throws, within } from "@protoport/testing";

const service = "/greenhouse.v1.GreenhouseService";
const acceptElsewhere = (): Response => new Response(null, { status: 202 });

describe("a request over Fetch", () => {
  test("is accepted if its header is exactly at the limit", async () => {
    // Counted as in HTTP/2, which adds 32 bytes to each name and value (RFC 9113 §6.5.2).
    const header = new Headers(Array.from({ length: 5 }, (_, at) => [`x-${at}`, "y".repeat(65)]));
    const fetch = serveByFetch({}, { limits: { headerBytes: 500 } });
    expect((await fetch(new Request("https://garden.example/a", { headers: header }))).status).toBe(404);
    header.set("x-0", "y".repeat(66));
    expect((await fetch(new Request("https://garden.example/a", { headers: header }))).status).toBe(431);
  });

  test("is not read beyond the size limit", async () => {
    let pulls = 0;
    const pull: Pull = (controller) => {
      pulls += 1;
      controller.enqueue(new Uint8Array(10));
    };
    const fetch = serveByFetch({}, { readMaxBytes: 100 });
    expect([(await fetch(pulledRequest(pull))).status, pulls]).toEqual([413, 11]);
    const announced = pulledRequest(pull);
    announced.headers.set("content-length", "101");
    expect([(await fetch(announced)).status, pulls]).toEqual([413, 11]);
  });

  test("releases the buffers of small body chunks", async () => {
    const pieces: WeakRef<Uint8Array>[] = [];
    const pull: Pull = (controller) => {
      const piece = new Uint8Array([0x20]);
      pieces.push(new WeakRef(piece));
      controller.enqueue(piece);
    };
    const kept = Promise.withResolvers<number>();
    const fetch = serveByFetch({});
    const answer = fetch(
      pulledRequest((controller) => {
        if (pieces.length < 1_000) return pull(controller);
        // A WeakRef that is created in this turn keeps its target until the turn ends.
        setImmediate(() => {
          collectGarbage();
          kept.resolve(pieces.filter((piece) => piece.deref() !== undefined).length);
          controller.error(new Error("enough"));
        });
      }),
    );
    expect(await within(kept.promise, "a thousand pieces")).toBeLessThan(100);
    expect((await answer).status).toBe(499);
  });

  test("releases a body chunk before the next one arrives", async () => {
    const chunks: WeakRef<ArrayBuffer>[] = [];
    let isKept = true;
    const pull: Pull = async (controller) => {
      if (chunks.length === 0) {
        // Contains thousands of empty messages.
        const { buffer } = new Uint8Array(65_000);
        chunks.push(new WeakRef(buffer));
        return controller.enqueue(new Uint8Array(buffer));
      }
      // A slow machine reads the messages in several turns.
      for (let turn = 0; turn < 100 && isKept; turn += 1) {
        await new Promise(setImmediate);
        collectGarbage();
        isKept = chunks.some((chunk) => chunk.deref() !== undefined);
      }
      controller.close();
    };
    const fetch = serveByFetch({
      recordReadings: async (messages) => {
        const iterator = messages[Symbol.asyncIterator]();
        let count = 0;
        while ((await iterator.next()).done !== true) count += 1;
        return { count };
      },
    });
    const { body } = pulledRequest(pull);
    const headers = { "content-type": "application/connect+proto" };
    const url = `http://fetch.example${service}/RecordReadings`;
    const answer = await fetch(new Request(url, { method: "POST", headers, body, duplex: "half" }));
    expect([answer.status, isKept]).toEqual([200, false]);
  });

  test("allocates memory only for the base64 text received so far", async () => {
    const arrived = Promise.withResolvers<void>();
    const client = new AbortController();
    let sentBytes = 0;
    const { body } = pulledRequest((controller) => {
      if (sentBytes >= 1_000_000) return arrived.resolve();
      sentBytes += 100_000;
      controller.enqueue(new Uint8Array(100_000).fill(0x41));
    });
    const headers = { "content-type": "application/grpc-web-text+proto" };
    const url = `http://fetch.example${service}/WaterBed`;
    const before = await retainedBytes();
    const init = { method: "POST", headers, body, duplex: "half", signal: client.signal } as const;
    const answer = serveByFetch({})(new Request(url, init));
    await within(arrived.promise, "the body");
    const takenBytes = (await retainedBytes()) - before;
    client.abort();
    await answer;
    expect(takenBytes).toBeLessThan(3 * sentBytes);
  });

  test.each<{ what: string; pull: Pull }>([
    { what: "stream fails", pull: (controller) => controller.error(new Error("broken")) },
    { what: "yields a string instead of bytes", pull: (controller) => controller.enqueue("{}") },
  ])("whose body $what does not reach the handler", async ({ pull }) => {
    let called = false;
    const response = await serveByFetch({ waterBed: () => ((called = true), {}) })(pulledRequest(pull));
    expect([response.status, await response.text(), called]).toEqual([499, "", false]);
  });

  test("gets status 500 if the application already read its body", async () => {
    const fetch = serveByFetch({ waterBed: () => ({}) });
    const read = pulledRequest((controller) => controller.close());
    await read.arrayBuffer();
    const locked = pulledRequest((controller) => controller.close());
    locked.body?.getReader();
    const begun = pulledRequest((controller) => controller.enqueue(new Uint8Array(1)));
    const reader = begun.body?.getReader();
    await reader?.read();
    reader?.releaseLock();
    for (const request of [read, locked, begun]) {
      const response = await fetch(request);
      expect(response.status).toBe(500);
      expect(await response.text()).toContain("mount the gateway before any body parser");
    }
  });

  describe("with a body consumed by a hook", () => {
    const readers = [
      { how: "locks", take: (request: Request) => void request.body?.getReader() },
      { how: "reads", take: async (request: Request) => void (await request.arrayBuffer()) },
    ];
    const calls = [
      { path: "/beds/7:water", type: "application/json", sent: "{}", status: 500 },
      { path: "/readings", type: "application/x-ndjson", sent: "{}", status: 500 },
      { path: `${service}/WaterBed`, type: "application/json", sent: "{}", status: 500 },
      { path: `${service}/WaterBed`, type: "application/grpc-web", sent: "\0".repeat(5), status: 200 },
      { path: `${service}/RecordReadings`, type: "application/connect+proto", sent: "\0".repeat(5), status: 200 },
    ];
    const hooks = ["admit", "requestGate"] as const;
    const rows = readers.flatMap((by) => calls.flatMap((call) => hooks.map((hook) => ({ ...by, ...call, hook }))));

    test.each(rows)(
      "gets a single error response if $hook $how it ($type at $path)",
      async ({ take, hook, path, type, sent, status }) => {
        const handled: unknown[] = [];
        const answered: unknown[] = [];
        const headers = { "content-type": type };
        const request = new Request(`http://fetch.example${path}`, { method: "POST", headers, body: sent });
        const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
        const handlers: Parameters<typeof serveByFetch>[0] = {
          waterBed: (message) => (handled.push(message), {}),
          recordReadings: async (messages) => {
            for await (const message of messages) handled.push(message);
            return {};
          },
        };
        const fetch = serveByFetch(handlers, {
          rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] },
          [hook]: () => take(request),
          onResponse: ({ error }) => answered.push(error?.code),
        });
        const answer = await within(fetch(request), "a response");
        const text = decodeURIComponent(await answer.text());
        expect(text).toContain("the request body was read before the gateway got it");
        expect([answer.status, answered, handled]).toEqual([status, [Code.Internal], []]);
      },
    );
  });

  test.each([
    { where: "inside", end: -8 },
    { where: "after", end: undefined },
  ])("is reported as cancelled if its stream fails $where its gzip body", async ({ end }) => {
    const failed = Promise.withResolvers<unknown>();
    const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
    const fetch = serveByFetch(
      {
        recordReadings: async (messages) => {
          try {
            for await (const { sensor } of messages) expect(sensor).toBe("one");
          } catch (error) {
            failed.resolve(error);
          }
          return {};
        },
      },
      { rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] } },
    );
    const begun = gzipSync('{"sensor":"one"}\n').subarray(0, end);
    const broken = new Error("broken");
    const pull = (controller: ReadableStreamDefaultController): void => controller.error(broken);
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(begun)), pull });
    const headers = { "content-type": "application/x-ndjson", "content-encoding": "gzip" };
    await fetch(new Request("http://fetch.example/readings", { method: "POST", headers, body, duplex: "half" }));
    expect(await within(failed.promise, "the end of the messages")).toMatchObject({ code: Code.Canceled });
  });

  test("with gzip may have an empty body", async () => {
    const fetch = serveByFetch({ waterBed: () => ({}) });
    const statuses: number[] = [];
    for (const bytes of [0, 1]) {
      const headers = { "content-type": "application/proto", "content-encoding": "gzip" };
      const init = { method: "POST", headers, body: new Uint8Array(bytes) };
      statuses.push((await fetch(new Request(`http://fetch.example${service}/WaterBed`, init))).status);
    }
    expect(statuses).toEqual([200, 400]);
  });

  test("is passed to next without calling admit if no route matches", async () => {
    const fetch = serveByFetch({}, { admit: throws(new ConnectError("stay out", Code.Unauthenticated)) });
    const ask = async (path: string, method = "GET"): Promise<number> =>
      (await fetch(new Request(`http://fetch.example${path}`, { method }), { next: acceptElsewhere })).status;
    expect([await ask("/nowhere"), await ask("/sensors/palm/reading")]).toEqual([202, 401]);
    // The path belongs to the gateway for every method.
    expect(await ask("/sensors/palm/reading", "PUT")).toBe(401);
    expect((await fetch(new Request("http://fetch.example/nowhere"))).status).toBe(401);
  });

  test("has the peer and context values that the server provides", async () => {
    const key = createContextKey("nobody");
    const answers: CompletedRequest[] = [];
    const options = { onResponse: (answer: CompletedRequest) => void answers.push(answer) };
    const fetch = serveByFetch({ getReading: (_, { values }) => ({ sensor: values.get(key) }) }, options);
    const peer = { address: "192.0.2.1", port: 7 };
    const request = new Request("http://fetch.example/sensors/palm/reading?");
    const response = await fetch(request, { peer, contextValues: createContextValues().set(key, "flora") });
    expect(await response.json()).toEqual({ sensor: "flora" });
    expect(answers).toMatchObject([{ peer, path: "/sensors/palm/reading", httpStatus: 200, protocol: "rest" }]);
    await fetch(new Request("http://fetch.example/sensors/palm/reading#fragment"));
    expect(answers[1]).toMatchObject({
      peer: { address: "", port: 0 },
      path: "/sensors/palm/reading",
      // A Fetch request has no HTTP version.
      httpVersion: undefined,
      httpStatus: 200,
    });
  });
});
