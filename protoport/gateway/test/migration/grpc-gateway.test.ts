import { describe, expect, test } from "vitest";
import { createGateway, type Gateway, type GatewayOptions, type RestServiceOptions } from "../../src/index.ts";
import { Refused } from "../../../testing/src/gen/moved/v1/moved_pb.ts";
import { type Case, cases } from "./cases.ts";
import { migrationOptions } from "./handlers.ts";
// oxfmt-ignore
import { type Address, exchangeHttp1, fieldValue, type HttpRequest, openHttp1, shared, within
} from "@protoport/testing";

// Shows which requests in grpc-gateway's integration tests get the same response, by default or with options.

/** The options that the profile "grpc-gateway" sets. */
// oxfmt-ignore
const everyOption = [
  "lenient", "ignoreBodies", "mapsInQuery", "structsInQuery", "goDurations", "protobufBodies", "prettyJson",
  "grpcMetadata", "streamInResults", "jsonClientStreams", "updateMaskFromBody",
] as const satisfies readonly (keyof RestServiceOptions)[];

/** Gateways by the options that are on, each started once. */
class Gateways implements AsyncDisposable {
  readonly #started = new Map<string, Promise<readonly [Gateway, Address]>>();
  /** The signals of waiting calls, in order. */
  readonly waiting: AbortSignal[] = [];

  async addressWith(options: readonly (keyof RestServiceOptions)[]): Promise<Address> {
    const key = [...options].toSorted().join();
    const started = this.#started.get(key) ?? this.#start(options);
    this.#started.set(key, started);
    return (await started)[1];
  }

  async #start(options: readonly (keyof RestServiceOptions)[]): Promise<readonly [Gateway, Address]> {
    const service = Object.fromEntries(options.map((name) => [name, true]));
    const gateway = createGateway(migrationOptions({ service: () => service }, (stop) => void this.waiting.push(stop)));
    return [gateway, await gateway.listen({ host: "127.0.0.1", port: 0 })];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const started of this.#started.values()) await (await started)[0].close();
  }
}

function requestOf({ request, header = [], body }: Case): HttpRequest {
  const [httpMethod = "", path = ""] = request.split(" ");
  // UTF-8 on the wire, because the client writes headers as Latin-1.
  const sent = header.map(([name, value]) => [name, Buffer.from(value).toString("latin1")] as const);
  return { httpMethod, path, header: sent, ...(body !== undefined && { body: Buffer.from(body) }) };
}

/** Returns the part of the response that a case compares, in the case's form. */
async function responseTo(one: Case, address: Address): Promise<Pick<Case, "response" | "fields" | "trailer">> {
  const { httpStatus, header, trailer, body } = await exchangeHttp1(address, requestOf(one));
  const text = String(body);
  const isOneValue = fieldValue(header, "content-type") === "application/json" && !text.includes("\n") && text !== "";
  const [, expectedBody] = one.refused?.response ?? one.missing?.response ?? one.response;
  const content: unknown = isOneValue ? JSON.parse(text) : text;
  return {
    response: expectedBody === undefined ? [httpStatus] : [httpStatus, content],
    ...(one.fields !== undefined && {
      fields: Object.fromEntries(Object.keys(one.fields).map((name) => [name, fieldValue(header, name) ?? ""])),
    }),
    ...(one.trailer !== undefined && { trailer }),
  };
}

function expectedOf({ response, fields, trailer }: Case): Pick<Case, "response" | "fields" | "trailer"> {
  return { response, ...(fields !== undefined && { fields }), ...(trailer !== undefined && { trailer }) };
}

/** Sends a request whose client disconnects while the handler runs. Returns `false` if the response came first. */
async function disconnect(one: Case, address: Address, waiting: AbortSignal[]): Promise<boolean> {
  using connection = await openHttp1(address);
  const before = waiting.length;
  connection.request(requestOf(one));
  const responded = connection.readResponse().then(
    () => "a response",
    () => "the end",
  );
  const called = expect.poll(() => waiting.length).toBe(before + 1);
  if ((await Promise.race([called, responded])) === "a response") return false;
  connection.socket.resetAndDestroy();
  await within(responded, "the end");
  await expect.poll(() => waiting.at(-1)?.aborted).toBe(true);
  return true;
}

const refusedOptions: GatewayOptions = { routes: (router) => router.service(Refused, { getMany: (sent) => sent }) };

const nameOf = (one: Case): Case & { name: string } => ({ ...one, name: one.of.join(", ") });
const named = cases.map(nameOf);

describe("the grpc-gateway integration test", () => {
  const gateways = shared(() => new Gateways());
  const isSame = async (one: Case, options: readonly (keyof RestServiceOptions)[]): Promise<boolean> => {
    const address = await gateways.addressWith(options);
    if (one.leaves === true) return await disconnect(one, address, gateways.waiting);
    try {
      expect(await responseTo(one, address)).toEqual(expectedOf(one));
    } catch {
      return false;
    }
    return true;
  };
  const same = named.filter(({ by, refused, missing }) => by === undefined && !refused && !missing);
  const byOption = named.filter(({ by }) => by !== undefined);
  const different = named.filter(({ refused, missing }) => refused !== undefined || missing !== undefined);

  test.each(same)("$name gets the same response as from grpc-gateway", async (one) => {
    const address = await gateways.addressWith([]);
    if (one.leaves === true) expect(await disconnect(one, address, gateways.waiting)).toBe(true);
    else expect(await responseTo(one, address)).toEqual(expectedOf(one));
  });

  test.each(byOption)("$name requires the options $by to get grpc-gateway's response", async (one) => {
    const { by = [] } = one;
    const address = await gateways.addressWith(by);
    if (one.leaves === true) expect(await disconnect(one, address, gateways.waiting)).toBe(true);
    else expect(await responseTo(one, address)).toEqual(expectedOf(one));
    for (const option of by) {
      const others = by.filter((other) => other !== option);
      expect([option, await isSame(one, others)]).toEqual([option, false]);
    }
    expect(await isSame(one, everyOption)).toBe(true);
  });

  test.each(different)("$name does not get grpc-gateway's response, even with all options", async (one) => {
    const { response } = one.refused ?? one.missing ?? one;
    const got = await responseTo(one, await gateways.addressWith(everyOption));
    expect(got.response).toEqual(response);
    expect(got).not.toEqual(expectedOf(one));
  });

  test("a gateway with a repeated field in a path does not start", () =>
    expect(() => createGateway(refusedOptions)).toThrow('path variable "numbers" must not be a repeated field'));
});
