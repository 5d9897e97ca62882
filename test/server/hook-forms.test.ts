import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { PlantServerOptions } from "../../src/server/index.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import {
  callbackOf,
  expectNoUnhandledRejections,
  type Form,
  forms,
} from "../../packages/testing/src/callback-forms.ts";
import { exchangeHttp1 } from "../../packages/testing/src/carriers/http1-connection.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { authorized, startPlantServer } from "../support/server/plant-server.ts";

// The hooks of a program run beside those of the server: request ids, the log and metrics. None of them keeps another
// from its call, whether it throws or, as TypeScript allows where nothing or any object is returned, rejects.

/** The options of a plant server that are functions: one without a row in the table does not compile. */
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

interface Row {
  readonly value?: object;
  /** Fields of the line of the deletion. */
  readonly fields?: Readonly<Record<Form, object>>;
  /** Whether a failure is a line of its own. */
  readonly isReported: boolean;
}

const promised = { logFieldsProblem: "logFields must return its result, got a promise" };

const hooks: Readonly<Record<Hook, Row>> = {
  onRequest: { isReported: true },
  onAnswer: { isReported: true },
  logFields: {
    value: { tenant: "north" },
    fields: {
      returns: { tenant: "north" },
      resolves: promised,
      throws: { logFieldsProblem: failure.message },
      rejects: promised,
    },
    isReported: false,
  },
};

expectNoUnhandledRejections();

describe.each(Object.entries(hooks))("%s", (name, { value, fields, isReported }) => {
  test.each(forms)("that %s leaves the deletion, its audit line and the other hooks as they are", async (form) => {
    const { log, lines } = openLogLines("info");
    const called: string[] = [];
    const counting: Partial<PlantServerOptions> = {
      onRequest: () => void called.push("onRequest"),
      onAnswer: () => void called.push("onAnswer"),
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
    expect(called).toEqual(["onRequest", "logFields", "onAnswer"].filter((other) => other !== name));
    const audited = { msg: "call", plantId: "7", subject: "alice", ...fields?.[form] };
    expect(lines().filter(({ msg }) => msg === "call")).toMatchObject([audited]);
    const failed = lines().filter(({ errorCode }) => errorCode === "ERR_CALLBACK_FAILED");
    const hasFailed = isReported && (form === "throws" || form === "rejects");
    expect(failed).toMatchObject(hasFailed ? [{ msg: `${name} has failed`, err: { message: failure.message } }] : []);
  });
});

test.each(forms)(
  "a log that throws keeps no call from an onAnswer that %s, and its error is reported",
  async (form) => {
    const { log } = openLogLines("info");
    const answered: number[] = [];
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
      onAnswer: ({ httpStatus }) => {
        answered.push(httpStatus);
        return hook();
      },
    });
    const request = { httpMethod: "DELETE", path: "/plants/7", header: [authorized] };
    expect(await exchangeHttp1(server.address, request)).toMatchObject({ httpStatus: 204 });
    await new Promise(setImmediate);
    expect(answered).toEqual([204]);
    expect(reported).toMatchObject([{ errorCode: "ERR_CALLBACK_FAILED", err: logFailure }]);
  },
);
