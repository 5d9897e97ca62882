import { subscribe } from "node:diagnostics_channel";
import { getEventListeners } from "node:events";
import { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { Backlog, BacklogBudget } from "../../gateway/src/exchange/backlog.ts";
import { ReceiveFlow } from "../../http-engine/src/http2/receive-flow.ts";
import { takeWindow, windowBytesMax } from "../../gateway/src/compression/window-budget.ts";
import { waitLimitMs } from "./deadline.ts";
import { projectFolder } from "./process/child-program.ts";

// Set up before each test file. When a file is over, nothing that our source code has begun meanwhile may go on: no timer,
// no account of a budget, no listener of a signal, no window of a decoder, no bytes of a window of HTTP/2 that were not
// given back, no connection. So a clean-up that is lost fails the files that need it, although all their answers are right.

/** Something that has begun. */
interface Begun {
  readonly what: string;
  /** Who began it. */
  readonly callers: readonly string[];
  readonly isOver: () => boolean;
}

declare global {
  /** What has begun in this process, which runs many test files, and is not known to be over. */
  var begun: Set<Begun> | undefined;
}

/** How many are kept before those that are over are looked for: few, because some tests measure the memory in use. */
const keptMin = 64;

/** The sources of the packages, and of the application in the project's folder. */
const sourceFile = /^(?:packages\/(?!testing\/)[^/]+\/)?src\//;

/** How many are shown of what is left. */
const shownMax = 5;

const begun = (globalThis.begun ??= countFromNowOn());

afterAll(async () => {
  // Sockets close, and what depends on them ends, within a few turns of the event loop.
  const end = performance.now() + waitLimitMs / 3;
  while (leftBehind().length > 0 && performance.now() < end) await new Promise(setImmediate);
  const left = leftBehind();
  begun.clear();
  expect(left.slice(0, shownMax), left[0]?.replaceAll("\n", ", of ")).toEqual([]);
});

/** Says what is left, and who began it. */
function leftBehind(): string[] {
  forgetOver(begun);
  const left = [...begun].map(({ what, callers }) => [what, ...callers].join("\n"));
  return areWindowsBack() ? left : [...left, "the window of a decoder"];
}

function areWindowsBack(): boolean {
  try {
    takeWindow(windowBytesMax)();
    return true;
  } catch {
    return false;
  }
}

/** Forgets what is over. */
function forgetOver(all: Set<Begun>): void {
  for (const one of all) if (one.isOver()) all.delete(one);
}

function countFromNowOn(): Set<Begun> {
  const all = new Set<Begun>();
  let lookAt = keptMin;
  const begin = (one: Begun): void => {
    // Not what dependencies and tests have begun.
    if (one.callers.length === 0) return;
    all.add(one);
    if (all.size < lookAt) return;
    forgetOver(all);
    lookAt = Math.max(keptMin, 2 * all.size);
  };
  countTimers(begin);
  countListeners(begin);
  countAccounts(begin);
  countWindows(begin);
  // Connections that are accepted have accounts.
  subscribe("net.client.socket", function connected(message) {
    if (typeof message !== "object" || message === null || !("socket" in message)) return;
    const { socket } = message;
    if (!(socket instanceof Socket)) return;
    begin({ what: "a connection", callers: callersOf(connected), isOver: () => socket.closed });
  });
  return all;
}

type Begin = (one: Begun) => void;

function countTimers(begin: Begin): void {
  const ours = new WeakSet();
  for (const what of ["setTimeout", "setInterval"]) {
    watch(globalThis, what, ({ result: timer, callers }) => {
      if (!(timer instanceof Object)) return;
      const from = callers();
      if (from.length > 0) ours.add(timer);
      begin({ what, callers: from, isOver: () => Reflect.get(timer, "_destroyed") === true });
      if (what === "setInterval") queueMicrotask(() => tellIfKeeping(begin, timer, from));
    });
  }

  // A timer that is refreshed goes on until it is cleared, although it is over between two rounds.
  const timers: object = Object.getPrototypeOf(setTimeout(() => undefined));
  watch(timers, "refresh", ({ self: timer, callers }) => {
    if (!(timer instanceof Object) || !ours.delete(timer)) return;
    const isOver = (): boolean => typeof Reflect.get(timer, "_onTimeout") !== "function";
    begin({ what: "a timer that begins again", callers: callers(), isOver });
  });
}

/** What begins the interval of calls that wait for a connection. */
const waitingCalls = `#connect in ${join(projectFolder, "packages/proxy/src/upstreams/upstream.ts")}`;

/** Tells of an interval that keeps the process alive, which none does but that of calls that wait. */
function tellIfKeeping(begin: Begin, timer: object, callers: readonly string[]): void {
  const keeps = "hasRef" in timer && typeof timer.hasRef === "function" && timer.hasRef() === true;
  if (!keeps || callers[0] === waitingCalls) return;
  begin({ what: "an interval that keeps the process", callers, isOver: () => false });
}

function countListeners(begin: Begin): void {
  watch(AbortSignal.prototype, "addEventListener", ({ self: signal, given: [, listener], callers }) => {
    if (!(signal instanceof AbortSignal)) return;
    const isOver = (): boolean => signal.aborted || !getEventListeners(signal, "abort").some((one) => one === listener);
    begin({ what: "a listener", callers: callers(), isOver });
  });
}

function countAccounts(begin: Begin): void {
  const closed = new WeakSet<Backlog>();
  watch(BacklogBudget.prototype, "open", ({ result: account, callers }) => {
    if (!(account instanceof Backlog)) return;
    begin({ what: "an account", callers: callers(), isOver: () => closed.has(account) });
  });
  watch(Backlog.prototype, "close", ({ self: account }) => {
    if (account instanceof Backlog) closed.add(account);
  });
}

function countWindows(begin: Begin): void {
  /** The bytes that were taken out of each window and not given back. */
  const taken = new WeakMap<ReceiveFlow, { bytes: number }>();
  watch(ReceiveFlow.prototype, "take", ({ self: flow, given: [bytes], callers }) => {
    if (!(flow instanceof ReceiveFlow)) return;
    const of = taken.get(flow) ?? { bytes: 0 };
    taken.set(flow, of);
    if (of.bytes === 0) begin({ what: "bytes of a window", callers: callers(), isOver: () => of.bytes === 0 });
    of.bytes += Number(bytes);
  });
  watch(ReceiveFlow.prototype, "credit", ({ self: flow, given: [bytes] }) => {
    const of = flow instanceof ReceiveFlow ? taken.get(flow) : undefined;
    if (of !== undefined) of.bytes -= Number(bytes);
  });
}

/** A call of a function that is watched. */
interface Call {
  readonly self: unknown;
  readonly given: readonly unknown[];
  readonly result: unknown;
  /** Returns who has called, to {@link watch} only. */
  readonly callers: () => readonly string[];
}

/** Tells of each call of a method. */
function watch(holder: object, name: string, tell: (call: Call) => void): void {
  const method: (...given: unknown[]) => unknown = Reflect.get(holder, name);
  const apply = (target: typeof method, self: unknown, given: unknown[]): unknown => {
    const result = Reflect.apply(target, self, given);
    tell({ self, given, result, callers: () => callersOf(apply) });
    return result;
  };
  Reflect.set(holder, name, new Proxy(method, { apply }));
}

/**
 * Returns the callers of a function, the nearest first, as text: an error would keep alive what they work on. None unless
 * the nearest that is not of node is in a {@link sourceFile}.
 */
function callersOf(callee: (...given: never[]) => unknown): readonly string[] {
  const prepare: unknown = Reflect.get(Error, "prepareStackTrace");
  Error.prepareStackTrace = (_, calls) => {
    const caller = calls.find((call) => call.getFileName()?.startsWith("node:") === false);
    const file = caller?.getFileName() ?? "";
    // The listener of the health service lives as long as its signal.
    const [, path = ""] = file.split(projectFolder);
    if (!sourceFile.test(path) || caller?.getFunctionName() === "createHealthService") return [];
    return calls.map((call) => `${call.getFunctionName()} in ${call.getFileName()}`);
  };
  const traced: { stack?: readonly string[] } = {};
  Error.captureStackTrace(traced, callee);
  const { stack = [] } = traced;
  Reflect.set(Error, "prepareStackTrace", prepare);
  return stack;
}
