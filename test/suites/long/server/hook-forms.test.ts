import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { PlantServerOptions } from "../../../../src/server/index.ts";
import { openMemoryStore } from "../../../../src/stores/index.ts";
import {
  callbackOf,
  expectNoUnhandledRejections,
  type Form,
  forms,
} from "../../../../protoport/testing/src/callback-forms.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { openLogLines } from "@protoport/testing/process";
import { authorized, startPlantServer } from "../../../support/server/plant-server.ts";

// Custom hooks run in addition to the server's, which set request ids, log and measure. No hook prevents the others
// from being called, even if it throws or rejects. TypeScript allows an async function where the result is void or
// object.

/** The plant server options that are functions. One that is missing in the table does not compile. */
type Hook = Exclude<
  {
    [Name in keyof PlantServerOptions]-?: NonNullable<PlantServerOptions[Name]> extends (...given: never[]) => unknown
      ? Name
      : never;
  }[keyof PlantServerOptions],
  undefined
>;

const failure = new ConnectError("no tenant", Code.NotFound);

const hookOf = (form: Form, value: unknown): (() => unknown) => callbackOf(form, value, failure);

interface HookTestCase {
  readonly value?: object;
  /** Fields in the deletion's log line. */
  readonly fields?: Readonly<Record<Form, object>>;
  /** Whether a failure is logged separately. */
  readonly isReported: boolean;
}

const promised = { logFieldsProblem: "logFields must be synchronous, got a promise" };

// oxfmt-ignore
const hooks: Readonly<Record<Hook, HookTestCase>> = { onRequest: { isReported: true },
  onResponse: { isReported: true },
  logFields: { value: { tenant: "north" },
    fields: { returns: { tenant: "north" }, resolves: promised, throws: { logFieldsProblem: failure.message },
      rejects: promised }, isReported: false },
};

expectNoUnhandledRejections();

describe.each(Object.entries(hooks))("the hook %s", (name, { value, fields, isReported }) => {
  test.each(forms)("that %s does not affect the deletion or other hooks", async (form) => {
    const { log, lines } = openLogLines("info");
    const called: string[] = [];
    const counting: Partial<PlantServerOptions> = {
      onRequest: () => void called.push("onRequest"),
      onResponse: () => void called.push("onResponse"),
      logFields: () => (called.push("logFields"), {}),
    };
    await using server = await startPlantServer({
      store: openMemoryStore(new Set([7n])),
      log,
      ...counting,
      [name]: hookOf(form, value),
    });
    const request = { httpMethod: "DELETE", path: "/plants/7", header: [authorized] };
    expect(await exchangeHttp1(server.address, request)).toMatchObject({ httpStatus: 204 });
    await new Promise(setImmediate);
    expect(called).toEqual(["onRequest", "logFields", "onResponse"].filter((other) => other !== name));
    const audited = { msg: "call", plantId: "7", subject: "alice", ...fields?.[form] };
    expect(lines().filter(({ msg }) => msg === "call")).toMatchObject([audited]);
    const failed = lines().filter(({ errorCode }) => errorCode === "ERR_CALLBACK_FAILED");
    const hasFailed = isReported && (form === "throws" || form === "rejects");
    expect(failed).toMatchObject(hasFailed ? [{ msg: `${name} failed`, err: { message: failure.message } }] : []);
  });
});

test.each(forms)("an onResponse hook that %s is called even if the log throws", async (form) => {
  const { log } = openLogLines("info");
  const statuses: number[] = [];
  const reported: object[] = [];
  const logFailure = new Error("the disk is full");
  const failing = {
    ...log,
    isLevelEnabled: () => true,
    info: () => {
      throw logFailure;
    },
    error: (fields: object) => void reported.push(fields),
  };
  const hook = hookOf(form, undefined);
  await using server = await startPlantServer({
    store: openMemoryStore(new Set([7n])),
    log: failing,
    onResponse: ({ httpStatus }) => {
      statuses.push(httpStatus);
      return hook();
    },
  });
  const request = { httpMethod: "DELETE", path: "/plants/7", header: [authorized] };
  expect(await exchangeHttp1(server.address, request)).toMatchObject({ httpStatus: 204 });
  await new Promise(setImmediate);
  expect(statuses).toEqual([204]);
  expect(reported).toMatchObject([{ errorCode: "ERR_CALLBACK_FAILED", err: logFailure }]);
});
