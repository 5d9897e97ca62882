import { getEventListeners } from "node:events";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { encodeEmpty, type Field, openUpload, readOutcome, rpcRequest, startGreenhouse, type TestGreenhouse,
  type Upload, waterBedProcedure, wireFormats, within } from "@protoport/testing";

// The embedding program has a compression whose promise never settles.

type Version = Parameters<typeof openUpload>[1];

interface Stuck {
  readonly greenhouse: TestGreenhouse;
  call(version: Version, ...more: readonly Field[]): Promise<Upload>;
  compressing(): Promise<void>;
  /** Checks that the call has released everything. Its connection may stay open. */
  expectNothingLeft(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const formats = [wireFormats.rest, wireFormats["connect-json"], wireFormats.grpc, wireFormats["grpc-web"]];
type Format = (typeof formats)[number];
const decompress: Compression["decompress"] = async (bytes) => new Uint8Array(bytes);

async function start(format: Format, waterBed: () => object): Promise<Stuck> {
  const began = Promise.withResolvers<void>();
  const shutdown = new AbortController();
  const compress = async (): Promise<never> => (began.resolve(), await new Promise(() => {}));
  const greenhouse = await startGreenhouse(
    { waterBed },
    {
      acceptCompression: [{ name: "gzip", compress, decompress }],
      compressMinBytes: 0,
      shutdownSignal: shutdown.signal,
      rest: {
        errorRecord: ({ code: error, rawMessage: message }, { httpStatus }) => {
          return { httpStatus, body: { error, message } };
        },
      },
    },
  );
  const accepting: Field[] = Object.entries({ "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" });
  return {
    greenhouse,
    call: async (version, ...more) => {
      const header = [...accepting, ...more];
      const request =
        format.protocol === "rest"
          ? { httpMethod: "POST", path: "/beds/7:water", header }
          : rpcRequest(format, encodeEmpty(format), header, waterBedProcedure);
      const upload = await openUpload(greenhouse, version, [request.httpMethod, request.path], request.header);
      if ("body" in request && request.body !== undefined) upload.write(request.body);
      upload.end();
      return upload;
    },
    compressing: () => within(began.promise, "something to compress"),
    expectNothingLeft: async () => {
      await expect.poll(() => greenhouse.gateway.load.requests).toEqual({ http1: 0, http2: 0 });
      expect(getEventListeners(shutdown.signal, "abort")).toEqual([]);
    },
    [Symbol.asyncDispose]: () => greenhouse[Symbol.asyncDispose](),
  };
}

const refuse = (): never => {
  throw new ConnectError("no water", Code.NotFound);
};

describe.each(["1.1", "2"] as const)("over HTTP/%s", (version) => {
  describe.each(formats)("in $name", (format) => {
    test("a call whose response compression hangs ends at its deadline", async () => {
      await using stuck = await start(format, () => ({}));
      using upload = await stuck.call(version, ["connect-timeout-ms", "50"], ["grpc-timeout", "50m"]);
      expect(readOutcome(format, await within(upload.readResponse(), "the response")).code).toBe(Code.DeadlineExceeded);
      expect((await stuck.greenhouse.completed(1)).error?.code).toBe(Code.DeadlineExceeded);
      await stuck.expectNothingLeft();
    });

    test("a call whose response compression hangs ends when its client disconnects", async () => {
      await using stuck = await start(format, () => ({}));
      using upload = await stuck.call(version);
      await stuck.compressing();
      upload.reset();
      expect(await stuck.greenhouse.completed(1)).toMatchObject({ httpStatus: 0 });
      await stuck.expectNothingLeft();
    });
  });

  // gRPC and gRPC-Web send errors in the trailer, which is not compressed. Concurrent, because each takes a second.
  const inBody = [wireFormats.rest, wireFormats["connect-json"]];

  test("an error whose compression hangs is sent uncompressed", async () => {
    const send = async (format: Format): Promise<void> => {
      await using stuck = await start(format, refuse);
      using upload = await stuck.call(version);
      const response = await within(upload.readResponse(), "the response");
      expect(readOutcome(format, response)).toEqual({ code: Code.NotFound, message: "no water" });
      expect((await stuck.greenhouse.completed(1)).error?.code).toBe(Code.NotFound);
      await stuck.expectNothingLeft();
    };
    await Promise.all(inBody.map(send));
  });

  test("a call whose error compression hangs ends soon after its client disconnects", async () => {
    const leave = async (format: Format): Promise<void> => {
      await using stuck = await start(format, refuse);
      using upload = await stuck.call(version);
      await stuck.compressing();
      upload.reset();
      expect((await stuck.greenhouse.completed(1)).error?.code).toBe(Code.NotFound);
      await stuck.expectNothingLeft();
    };
    await Promise.all(inBody.map(leave));
  });
});
