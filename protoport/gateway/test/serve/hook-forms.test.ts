import { Code, ConnectError, type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { describe, expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy } from "../../../proxy/src/create-proxy.ts";
import { type Admit, createGateway, type Endpoint, type GatewayOptions } from "../../src/index.ts";
import { callbackOf, expectNoUnhandledRejections, type Form, forms } from "../../../testing/src/callback-forms.ts";
import { descriptorSetOf, openEveryTransport, transportNames, within } from "@protoport/testing";

// A hook may return a value, return a promise, throw or reject. Its type does not always forbid a promise, because
// TypeScript accepts an async function where nothing is returned, and JavaScript everywhere. A rejection that nobody
// handles would exit the process.

/** The gateway options that are functions. An option without a test case does not compile. */
type Hook = Exclude<
  {
    [Name in keyof GatewayOptions]-?: NonNullable<GatewayOptions[Name]> extends (...args: never[]) => unknown
      ? Name
      : never;
  }[keyof GatewayOptions],
  // Excludes the application's node:http handler, and `routes`, which has tests below.
  "fallback" | "routes"
>;

/** The response's status, and the reported fault. */
type Outcome = readonly [httpStatus: number, ...faults: string[]];

interface Row {
  /** The value that the hook returns or resolves with. */
  readonly value?: unknown;
  /** The handler. Without one, the call succeeds. */
  readonly handle?: () => never;
  /** The transports over which the hook is called. By default, all. */
  readonly transports?: readonly (typeof transportNames)[number][];
  readonly wants: Readonly<Record<Form, Outcome>>;
}

const refusal = new ConnectError("not yours", Code.PermissionDenied);
const converted = new ConnectError("converted", Code.Aborted);

function fail(): never {
  throw new ConnectError("no such bed", Code.NotFound);
}

function fault(): never {
  throw new Error("a defect");
}

const requestFailed = "cannot process the request";

/** Hooks that decide about a request. Their error is the response. */
const deciding: Row["wants"] = { returns: [200], resolves: [200], throws: [403], rejects: [403] };

/** Hooks that observe a request. Their failure is reported, and does not change the response. */
function observing(name: string, httpStatus: number): Row["wants"] {
  const failed: Outcome = [httpStatus, `${name} failed`];
  return { returns: [httpStatus], resolves: [httpStatus], throws: failed, rejects: failed };
}

// oxfmt-ignore
const hooks: Readonly<Record<Hook, Row>> = { admit: { wants: deciding },
  requestGate: { wants: deciding },
  onRequest: { wants: observing("onRequest", 200) },
  onError: { handle: fail, wants: observing("onError", 404) },
  onResponse: { wants: observing("onResponse", 200) },
  // If `onFault` itself fails, the failure is only printed.
  onFault: { handle: fault, wants: { returns: [500], resolves: [500], throws: [500], rejects: [500] } },
  toError: { value: converted, handle: fail,
    wants: { returns: [409], resolves: [500, "toError failed"], throws: [403, "toError failed"],
      rejects: [500, "toError failed"] } },
  clientAddress: { value: "192.0.2.1", transports: ["a handler in node:http", "a handler in node:http2"],
    wants: { returns: [200], resolves: [500, requestFailed], throws: [403], rejects: [500, requestFailed] } },
  contextValues: { value: createContextValues(), transports: ["a handler in node:http", "a handler in node:http2"],
    wants: { returns: [200], resolves: [500, requestFailed], throws: [403], rejects: [500, requestFailed] } },
};

const hookOf = (form: Form, value: unknown): (() => unknown) => callbackOf(form, value, refusal);
expectNoUnhandledRejections();

function routesOf(handle: () => object): Pick<GatewayOptions, "routes"> {
  return { routes: (router) => router.service(GreenhouseService, { waterBed: handle }) };
}

const water = { httpMethod: "POST", path: "/beds/7:water", header: [] };

describe.each(Object.entries(hooks))("the hook %s", (name, { value, handle = () => ({}), transports, wants }) => {
  test.each(forms.map((form) => ({ form, want: wants[form] })))(
    "that $form leads to $want (status, faults)",
    async ({ form, want }) => {
      using printed = vi.spyOn(console, "error").mockReturnValue();
      const faults: string[] = [];
      const onFault: GatewayOptions["onFault"] = (_, what) => void faults.push(what);
      await using gateway = await openEveryTransport({ ...routesOf(handle), onFault, [name]: hookOf(form, value) });
      const reported = new Set<string>();
      for (const transport of transports ?? transportNames) {
        const { httpStatus } = await within(gateway.ask(transport, water), `the response by ${transport}`);
        expect.soft([transport, httpStatus]).toEqual([transport, want[0]]);
        // Faults are reported after the response.
        await new Promise(setImmediate);
        for (const what of faults.splice(0)) reported.add(what);
      }
      expect([...reported]).toEqual(want.slice(1));
      const isPrinted = name === "onFault" && (form === "throws" || form === "rejects");
      expect(printed.mock.calls.flat().join("\n").includes("onFault failed")).toBe(isPrinted);
    },
  );
});

const refuse = (): never => {
  throw refusal;
};

const admits: Readonly<Record<string, Admit | undefined>> = {
  "no admit": undefined,
  "a synchronous admit": () => undefined,
  "an asynchronous admit": async () => {},
  "an admit that throws": refuse,
  "an admit that rejects": async () => refuse(),
};

const unwritable = { httpStatus: 600, body: "" };

/** Endpoints that fail, their status, and how many faults are reported. */
const failures: readonly (readonly [name: string, handle: Endpoint["handle"], httpStatus: number, faults: number])[] = [
  ["throws", refuse, 403, 0],
  ["rejects", async () => refuse(), 403, 0],
  ["throws an unexpected error", fault, 500, 1],
  ["rejects with an unexpected error", async () => fault(), 500, 1],
  ["returns an unwritable response", () => unwritable, 500, 1],
  ["resolves with an unwritable response", async () => unwritable, 500, 1],
];

describe.each(Object.entries(admits))("endpoints with %s", (admitName, admit) => {
  const isAdmitted = !/throws|rejects/.test(admitName);

  test.for(failures)("an endpoint that %s results in status $2 if called", async ([, handle, httpStatus, faults]) => {
    const reported: unknown[] = [];
    let calls = 0;
    const counted: Endpoint["handle"] = (request) => ((calls += 1), handle(request));
    const onFault = (error: unknown): void => void reported.push(error);
    const endpoints = [{ path: "/fails", open: false, handle: counted }];
    const options = { ...routesOf(() => ({})), endpoints, onFault, ...(admit && { admit }) };
    await using gateway = await openEveryTransport(options);
    for (const transport of transportNames) {
      reported.length = calls = 0;
      const pending = gateway.ask(transport, { httpMethod: "GET", path: "/fails", header: [] });
      const response = await within(pending, `the response by ${transport}`);
      const wanted = isAdmitted ? [httpStatus, faults, 1] : [403, 0, 0];
      expect([transport, response.httpStatus, reported.length, calls]).toEqual([transport, ...wanted]);
      expect(String(response.body)).not.toContain("defect");
    }
  });
});

const failing = new Error("the registry is away");
const greenhouse = { upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(GreenhouseService.file) };

describe("routes", () => {
  const promised = "routes must register the services synchronously, got a promise";

  test.each<[name: string, register: (router: ConnectRouter) => unknown, error: string]>([
    ["that throws", fault, "a defect"],
    ["that returns a promise", async (router) => router.service(GreenhouseService, {}), promised],
    ["that rejects", () => Promise.reject(failing), promised],
  ])("a function %s is rejected at start", async (_name, register, error) => {
    const routes: GatewayOptions["routes"] = register;
    expect(() => createGateway({ routes })).toThrow(error);
    await expect(createProxy({ upstreams: [greenhouse], routes })).rejects.toThrow(error);
  });
});

describe("an option of REST", () => {
  const internalError = '{"code":13,"status":"INTERNAL","message":"internal error","details":[]}';
  const throwFailing = (): never => {
    throw failing;
  };
  const asynchronous = async (): Promise<never> => {
    throw failing;
  };

  test("rest.service is rejected at start if it returns a promise", () => {
    const rest: object = { service: asynchronous };
    const create = (): unknown => createGateway({ ...routesOf(() => ({})), rest });
    expect(create).toThrow("rest.service must be synchronous, got a promise");
  });

  test.each<{ name: string; errorRecord: () => unknown; cause: string }>([
    { name: "throws", errorRecord: throwFailing, cause: "Error: the registry is away" },
    { name: "returns a promise", errorRecord: asynchronous, cause: "rest.errorRecord must be synchronous" },
    { name: "returns a BigInt", errorRecord: () => ({ httpStatus: 418, body: 1n }), cause: "BigInt" },
  ])("rest.errorRecord is reported and replaced by a 500 when it $name", async ({ errorRecord, cause }) => {
    const faults: string[] = [];
    const rest: object = { errorRecord };
    const onFault: GatewayOptions["onFault"] = (error, what) => void faults.push(`${what}: ${String(error)}`);
    await using gateway = await openEveryTransport({ ...routesOf(fail), rest, onFault });
    for (const transport of transportNames) {
      // The second request is sent on the same connection as the first request.
      for (const request of [water, { ...water, path: "/no/such/path" }]) {
        const response = await within(gateway.ask(transport, request), `the response by ${transport}`);
        expect.soft([transport, response.httpStatus, String(response.body)]).toEqual([transport, 500, internalError]);
      }
      await new Promise(setImmediate);
      const reported = expect.stringMatching(new RegExp(`^rest.errorRecord failed: .*${cause}`));
      expect.soft(faults.splice(0)).toEqual([reported, reported]);
    }
  });
});
