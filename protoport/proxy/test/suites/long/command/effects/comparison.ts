import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { GreenhouseService } from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { Health } from "../../../../../../gateway/src/health/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../../gateway/src/reflection/index.ts";
import {
  type Certificate,
  createCertificate,
  createIssuedCertificate,
} from "../../../../../../testing/src/http/certificate.ts";
import { Differs } from "../../../../../../testing/src/comparison.ts";
import { createTestGateway } from "../../../../../../testing/src/gateway/test-gateway.ts";
import { LibraryService } from "../../../../../../testing/src/gen/library/v1/library_pb.ts";
import { createTempFolder } from "../../../../../../testing/src/process/temp-folder.ts";
import { type RunningProxy, runProxy, type TestSettings } from "./running-proxy.ts";
import { afterAll, beforeAll, beforeEach } from "vitest";

const folder = createTempFolder();

/** Writes a file, and returns its path. */
export function fileOf(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

/** The header fields in calls that upstreams have received since the test started, oldest first. */
export const calls: Headers[] = [];
/** The header fields in reflection calls. */
export const reflectionCalls: Headers[] = [];
/** The services whose health was watched. */
export const watched: string[] = [];
/** When the sensor `fails` was called. */
export const attemptMs: number[] = [];
/** Ends calls to the sensor `waits`. */
export let release: () => void = () => undefined;
const reflected = [GreenhouseService, LibraryService];

/** Registers an upstream's services, whose readings have a temperature. */
function upstreamRoutes(degreesCelsius: number): (router: ConnectRouter) => void {
  const reflection = createReflectionService(reflected);
  return (router) => {
    router.service(GreenhouseService, {
      getReading: async ({ sensor }, { requestHeader, responseHeader, signal }) => {
        calls.push(requestHeader);
        if (sensor === "fails") {
          attemptMs.push(performance.now());
          throw new ConnectError("again", Code.Unavailable);
        }
        if (sensor === "waits")
          await new Promise<void>((resolve) => {
            release = resolve;
            signal.addEventListener("abort", () => resolve());
          });
        responseHeader.set("x-internal", "1");
        responseHeader.set("x-version", "2");
        if (sensor === "large") responseHeader.set("x-large", "x".repeat(6_000));
        return { sensor, degreesCelsius };
      },
      waterBed: ({ bed }, { requestHeader }) => {
        calls.push(requestHeader);
        return { bed };
      },
    });
    router.service(LibraryService, {});
    router.service(ServerReflection, {
      serverReflectionInfo: (requests, context) => {
        reflectionCalls.push(context.requestHeader);
        return reflection.serverReflectionInfo(requests, context);
      },
    });
    router.service(Health, {
      check: () => ({ status: 1 }),
      async *watch({ service }, { signal }) {
        watched.push(service);
        yield { status: 1 };
        await once(signal, "abort");
      },
    });
  };
}

/** The TLS upstream's certificate. */
export const issued: ReturnType<typeof createIssuedCertificate> = createIssuedCertificate("upstream");
/** The client certificate that this upstream accepts. */
export const clientCertificate: Certificate = createCertificate("client");
/** A certificate that nobody accepts. */
export const otherCertificate: Certificate = createCertificate("other");
/** The address of every proxy's upstream, unless a test case sets another address. */
export let address = "";
/** The address of an upstream with other readings. */
export let otherAddress = "";
/** The address of an upstream that requires {@link clientCertificate}. */
export let secureAddress = "";
/** Starts the upstreams before a file's tests, and stops them afterwards. */
export function useUpstreams(): void {
  const upstreams = [
    createTestGateway({ routes: upstreamRoutes(21) }),
    createTestGateway({ routes: upstreamRoutes(30) }),
    createTestGateway({ routes: upstreamRoutes(21) }),
  ] as const;
  beforeEach(() => {
    for (const list of [calls, reflectionCalls, watched, attemptMs]) list.length = 0;
  });
  beforeAll(async () => {
    const [one, other, secure] = upstreams;
    address = `http://127.0.0.1:${(await one.listen({ host: "127.0.0.1" })).port}`;
    otherAddress = `http://127.0.0.1:${(await other.listen({ host: "127.0.0.1" })).port}`;
    const { cert, key } = issued;
    const tls = { cert, key, requestCert: true, rejectUnauthorized: true, ca: clientCertificate.cert };
    secureAddress = `https://127.0.0.1:${(await secure.listen({ host: "127.0.0.1", tls })).port}`;
  });
  afterAll(() => Promise.all(upstreams.map((each) => each.close())));
  afterAll(() => folder[Symbol.dispose]());
}

/** The comparisons, by setting path. */
export type Effects = Readonly<Record<string, () => Promise<Differs>>>;

/** Starts a proxy with each settings object, and fails if the observations are equal. */
export async function compare(
  off: TestSettings,
  on: TestSettings,
  observe: (proxy: RunningProxy) => unknown,
): Promise<Differs> {
  const observed: unknown[] = [];
  for (const settings of [off, on]) {
    for (const list of [calls, reflectionCalls, watched, attemptMs]) list.length = 0;
    await using proxy = await runProxy([address], settings);
    observed.push(await observe(proxy));
  }
  return new Differs(observed);
}

/** Milliseconds to wait for an effect that the other value must not have. */
export const settledMs = 1_000;

/** A reading's path. */
export const reading = "/sensors/4/reading";
/** The full name of the upstream's service. */
export const greenhouse: string = GreenhouseService.typeName;

/** Calls a proxy, and reads the response. */
export async function ask(
  { baseUrl }: RunningProxy,
  path: string,
  init: RequestInit = {},
): Promise<{ readonly status: number; readonly header: Headers; readonly body: string }> {
  const response = await fetch(`${baseUrl}${path}`, init);
  return { status: response.status, header: response.headers, body: await response.text() };
}

type Observe<Result> = (proxy: RunningProxy) => Promise<Result>;

/** Returns a function that observes a call's status. */
export function statusOf(path: string, init?: RequestInit): Observe<number> {
  return async (proxy) => (await ask(proxy, path, init)).status;
}

/** Returns a function that observes a response's body. */
export function bodyOf(path: string, init?: RequestInit): Observe<string> {
  return async (proxy) => (await ask(proxy, path, init)).body;
}

/** Observes which services are served, or why the command has ended. */
export const outcomeOf = ({ outcome }: RunningProxy): Promise<string> => Promise.resolve(outcome);

/** A WaterBed call. */
export const waterBed: RequestInit = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
