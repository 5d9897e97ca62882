import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { getEventListeners } from "node:events";
import { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, aroundEach, expect } from "vitest";
import { Backlog, BacklogBudget } from "../../gateway/src/engine/backlog.ts";
import { ReceiveFlow } from "../../gateway/src/engine/http2/flow-control.ts";
import { reserveWindow, maxZstdWindowBytes } from "../../gateway/src/protocols/compression/decode-pieces.ts";
import { waitLimitMs } from "./deadline.ts";
import { projectFolder } from "./process/child-program.ts";

// Setup file that runs before each test file. After a file, no resource that the source code has opened may remain.
// Resources are timers, budget accounts, signal listeners, decoder windows, uncredited bytes in an HTTP/2 window, and
// connections. A missing cleanup thus fails the test files that depend on the cleanup, even if all their results are
// correct. An error that is only logged also fails the test file. The report names the test that opened the resource.
// A test that fails may skip its own cleanup, so its resources are not reported, in its file or in later ones.

/** A resource that was opened. */
interface OpenResource {
  readonly what: string;
  /** The callers that opened the resource. */
  readonly callers: readonly string[];
  readonly isClosed: () => boolean;
}

type Opener = { readonly name: string; hasFailed: boolean };

/** What is known about the resources in this process, which runs many test files. */
interface Tracking {
  /** The resources that are not known to be closed, and the tests that opened them. */
  readonly open: Map<OpenResource, Opener>;
  /** The test whose function, timer or callback is running. */
  readonly running: AsyncLocalStorage<Opener>;
  /** The last test that was started. It is the opener of what its peers open, such as accepted connections. */
  latest: Opener;
}

declare global {
  var leftovers: Tracking | undefined;
}

// Minimum number of entries before closed resources are removed. Low, because some tests measure memory.
const minSweep = 64;
/** Matches source files in the packages, and in the application's folder. */
const sourceFile = /^(?:protoport\/(?!testing\/)[^/]+\/)?src\//;
/** Number of stack frames for each resource in the failure message. Half the default number takes half the time. */
const maxFrames = 5;
/** Number of stack frames for a connection, whose first frames are node's. */
const maxConnectionFrames = 10;
/** Maximum number of resources in the failure message. */
const maxShown = 5;

const tracking = (globalThis.leftovers ??= trackResources());
const beforeTests: Opener = { name: "code outside a test", hasFailed: false };
tracking.latest = beforeTests;

// A test of an earlier file may hold a window.
const isWindowHeld = !areWindowsReleased();
let hasFailure = false;

aroundEach(async (runTest, { task, onTestFailed }) => {
  const opener: Opener = { name: task.fullTestName, hasFailed: false };
  onTestFailed(() => void (hasFailure = opener.hasFailed = true));
  tracking.latest = opener;
  await tracking.running.run(opener, runTest);
});

afterAll(async () => {
  tracking.latest = beforeTests;
  // Sockets and their resources close within a few event loop turns.
  const end = performance.now() + waitLimitMs / 3;
  while (findLeaks().length > 0 && performance.now() < end) await new Promise(setImmediate);
  const leaks = findLeaks();
  tracking.open.clear();
  expect(leaks.slice(0, maxShown), leaks[0]?.replaceAll("\n", ", of ")).toEqual([]);
});

/** Describes the resources that tests without a failure have left open, with their stacks. */
function findLeaks(): string[] {
  removeClosed(tracking.open);
  const leaks = [...tracking.open].flatMap(([{ what, callers }, { name, hasFailed }]) =>
    hasFailed ? [] : [[`${what}, opened by ${name}`, ...callers].join("\n")],
  );
  return isWindowHeld || hasFailure || areWindowsReleased() ? leaks : [...leaks, "the window of a decoder"];
}

function areWindowsReleased(): boolean {
  try {
    reserveWindow(maxZstdWindowBytes)();
    return true;
  } catch {
    return false;
  }
}

function removeClosed(open: Tracking["open"]): void {
  for (const one of open.keys()) if (one.isClosed()) open.delete(one);
}

function trackResources(): Tracking {
  const open: Tracking["open"] = new Map();
  const running = new AsyncLocalStorage<Opener>();
  const all: Tracking = { open, running, latest: { name: "the start", hasFailed: false } };
  let sweepAt = minSweep;
  const track = (one: OpenResource): void => {
    // Ignores resources that dependencies and tests open.
    if (one.callers.length === 0) return;
    open.set(one, running.getStore() ?? all.latest);
    if (open.size < sweepAt) return;
    removeClosed(open);
    sweepAt = Math.max(minSweep, 2 * open.size);
  };
  countTimers(track);
  countListeners(track);
  countAccounts(track);
  countWindows(track);
  // Only client connections are tracked here, because accepted connections are tracked by their accounts.
  subscribe("net.client.socket", function connected(message) {
    if (typeof message !== "object" || message === null || !("socket" in message)) return;
    const { socket } = message;
    if (!(socket instanceof Socket)) return;
    track({ what: "a connection", callers: callersOf(connected, maxConnectionFrames), isClosed: () => socket.closed });
  });
  // In production, a store only logs that it has ended a deletion twice. In tests, the warning fails the test file.
  process.on("warning", ({ name, message, stack = "" }) => {
    if (name === "TransitionError") track({ what: message, callers: [stack], isClosed: () => false });
  });
  return all;
}

type Track = (one: OpenResource) => void;

function countTimers(track: Track): void {
  const ours = new WeakSet();
  for (const what of ["setTimeout", "setInterval"])
    watch(globalThis, what, ({ result: timer, callers }) => {
      if (!(timer instanceof Object)) return;
      const from = callers();
      if (from.length > 0) ours.add(timer);
      // A weak reference, because a cleared timer still refers to its callback.
      const reference = new WeakRef(timer);
      const isClosed = (): boolean => Reflect.get(reference.deref() ?? { _destroyed: true }, "_destroyed") === true;
      track({ what, callers: from, isClosed });
      if (what === "setInterval") queueMicrotask(() => trackIfRefed(track, timer, from));
    });

  // A refreshed timer is open until it is cleared, although node marks the timer as destroyed between two rounds.
  const timers: object = Object.getPrototypeOf(setTimeout(() => undefined));
  watch(timers, "refresh", ({ self: timer, callers }) => {
    if (!(timer instanceof Object) || !ours.delete(timer)) return;
    const isClosed = (): boolean => typeof Reflect.get(timer, "_onTimeout") !== "function";
    track({ what: "a refreshed timer", callers: callers(), isClosed });
  });
}

/** The function that starts the interval for queued calls. */
const queueCheck = `#connect in ${join(projectFolder, "protoport/proxy/src/upstreams/upstream.ts")}`;

/** Tracks an interval that keeps the process alive. Only the interval for queued calls may do so. */
function trackIfRefed(track: Track, timer: object, callers: readonly string[]): void {
  const hasRef = "hasRef" in timer && typeof timer.hasRef === "function" && timer.hasRef() === true;
  if (!hasRef || callers[0] === queueCheck) return;
  track({ what: "an interval that keeps the process alive", callers, isClosed: () => false });
}

function countListeners(track: Track): void {
  watch(AbortSignal.prototype, "addEventListener", ({ self: signal, args: [, listener], callers }) => {
    if (!(signal instanceof AbortSignal)) return;
    const [signalRef, listenerRef] = [new WeakRef(signal), new WeakRef(Object(listener))];
    const isClosed = (): boolean => {
      const of = signalRef.deref();
      return of === undefined || of.aborted || !getEventListeners(of, "abort").some((o) => o === listenerRef.deref());
    };
    track({ what: "a listener", callers: callers(), isClosed });
  });
}

function countAccounts(track: Track): void {
  const closed = new WeakSet<Backlog>();
  watch(BacklogBudget.prototype, "open", ({ result: account, callers }) => {
    if (!(account instanceof Backlog)) return;
    track({ what: "an account", callers: callers(), isClosed: () => closed.has(account) });
  });
  watch(Backlog.prototype, "close", ({ self: account }) => {
    if (account instanceof Backlog) closed.add(account);
  });
}

function countWindows(track: Track): void {
  /** The number of bytes that each window has received, but not credited. */
  const uncredited = new WeakMap<ReceiveFlow, { bytes: number }>();
  watch(ReceiveFlow.prototype, "take", ({ self: flow, args: [bytes], callers }) => {
    if (!(flow instanceof ReceiveFlow)) return;
    const of = uncredited.get(flow) ?? { bytes: 0 };
    uncredited.set(flow, of);
    if (of.bytes === 0) track({ what: "bytes of a window", callers: callers(), isClosed: () => of.bytes === 0 });
    of.bytes += Number(bytes);
  });
  watch(ReceiveFlow.prototype, "credit", ({ self: flow, args: [bytes] }) => {
    const of = flow instanceof ReceiveFlow ? uncredited.get(flow) : undefined;
    if (of !== undefined) of.bytes -= Number(bytes);
  });
}

/** A call to a watched function. */
interface Call {
  readonly self: unknown;
  readonly args: readonly unknown[];
  readonly result: unknown;
  /** Returns the caller's stack. Valid only within the callback of {@link watch}. */
  readonly callers: () => readonly string[];
}

/** Calls `onCall` after each call to a method. */
function watch(holder: object, name: string, onCall: (call: Call) => void): void {
  const method: (...args: unknown[]) => unknown = Reflect.get(holder, name);
  const apply = (target: typeof method, self: unknown, args: unknown[]): unknown => {
    const result = Reflect.apply(target, self, args);
    onCall({ self, args, result, callers: () => callersOf(apply, maxFrames) });
    return result;
  };
  Reflect.set(holder, name, new Proxy(method, { apply }));
}

// A function's callers, nearest first, as strings, because an Error would retain their objects. Empty unless the
// nearest caller outside node is in a {@link sourceFile}.
function callersOf(callee: (...args: never[]) => unknown, most: number): readonly string[] {
  const prepare: unknown = Reflect.get(Error, "prepareStackTrace");
  Error.prepareStackTrace = (_, calls) => {
    const caller = calls.find((call) => call.getFileName()?.startsWith("node:") === false);
    const file = caller?.getFileName() ?? "";
    // The health service's listener lives as long as its signal.
    const [, path = ""] = file.split(projectFolder);
    if (!sourceFile.test(path) || caller?.getFunctionName() === "createHealthService") return [];
    return calls.map((call) => `${call.getFunctionName()} in ${call.getFileName()}`);
  };
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = most;
  const traced: { stack?: readonly string[] } = {};
  Error.captureStackTrace(traced, callee);
  const { stack = [] } = traced;
  Error.stackTraceLimit = limit;
  Reflect.set(Error, "prepareStackTrace", prepare);
  return stack;
}
