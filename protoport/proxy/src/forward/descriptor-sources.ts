import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { runInTurns, maxTimerMs } from "@protoport/gateway/exchange";
import { messageOf } from "@protoport/gateway/errors";
import { createGrpcTransport } from "../client/index.ts";
import { readRegularFile } from "@protoport/command-line";
import { requireRange, type Upstream } from "../upstreams/index.ts";
import type { DescriptorSource } from "./descriptors.ts";
import { readReflection, reflectionLimits } from "./read-reflection.ts";

/** Maximum descriptor file size in bytes, equal to the limit for reflection. */
const maxFileBytes = reflectionLimits.bytes;

/** Time limit for a read in milliseconds. Some servers send one file at a time by reflection. */
const maxReadMs = 30_000;

/** Milliseconds between two file checks. Deployments wait for a reload, and a check takes only microseconds. */
const fileCheckMsDefault = 250;

/** Milliseconds between two reads by reflection. A read costs the server about as much as one call. */
const reflectionReadMsDefault = 60_000;

/** Minimum milliseconds between two reads after server changes. Deployments replace servers in short succession. */
const serverChangeGapMs = 1_000;

/** Options for reading an upstream's descriptors. */
interface SourceOptions {
  readonly upstream: Upstream;
  /** Returns whether a service is proxied, by its full name. */
  readonly isProxied: (name: string) => boolean;
  readonly reloadEveryMs: number | undefined;
  /** Header fields for reflection calls. */
  readonly reflectionHeader: Readonly<Record<string, string>>;
}

/** @throws TypeError for a URL that is not a file URL, RangeError if `reloadEveryMs` is out of range */
export function toDescriptorSource(
  descriptors: Uint8Array | URL | "reflection" | DescriptorSource,
  options: SourceOptions,
): DescriptorSource {
  const { reloadEveryMs } = options;
  if (reloadEveryMs !== undefined) requireRange("reloadEveryMs", reloadEveryMs, 1, maxTimerMs);
  if (descriptors === "reflection") return reflectionSource(options);
  if (descriptors instanceof URL) return fileSource(fileURLToPath(descriptors), reloadEveryMs ?? fileCheckMsDefault);
  if (descriptors instanceof Uint8Array) return { read: () => Promise.resolve(descriptors) };
  return descriptors;
}

/** Reads from a source. Rejects at the time limit and when `signal` aborts, even if the source ignores its signal. */
export async function readInTime(
  source: DescriptorSource,
  upstreamName: string,
  signal: AbortSignal,
): Promise<Uint8Array> {
  signal.throwIfAborted();
  const reading = new AbortController();
  const ended = Promise.withResolvers<never>();
  const end = (): void => {
    const timeout = `${upstreamName}: reading the descriptors timed out after ${maxReadMs} ms`;
    const reason: unknown = signal.aborted ? signal.reason : new ConnectError(timeout, Code.DeadlineExceeded);
    ended.reject(reason);
    reading.abort(reason);
  };
  const timer = setTimeout(end, maxReadMs);
  signal.addEventListener("abort", end);
  try {
    return await Promise.race([source.read(reading.signal), ended.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Reads descriptors from the upstream itself, over the connections that calls use. */
function reflectionSource({ upstream, isProxied, reloadEveryMs, reflectionHeader }: SourceOptions): DescriptorSource {
  let omitted: ReadonlyMap<string, string> = new Map();
  return {
    omitted: () => omitted,
    read: async (signal) => {
      await using transport = createGrpcTransport({ baseUrl: upstream, readMaxBytes: reflectionLimits.bytes });
      try {
        const reflected = await readReflection(transport, {
          isSelected: isProxied,
          signal,
          header: reflectionHeader,
        });
        omitted = reflected.omitted;
        return await runInTurns(encodeSet(reflected.files));
      } catch (error) {
        throw new Error(`${upstream.name}: ${messageOf(error)}`, { cause: error });
      }
    },
    watch: (changed) => {
      const watches = [repeat(reloadEveryMs ?? reflectionReadMsDefault, changed), watchServers(upstream, changed)];
      return () => {
        for (const stopWatch of watches) stopWatch();
      };
    },
  };
}

/** Encodes a descriptor set as its files one after another. The generator yields after each file. */
function* encodeSet({ file }: FileDescriptorSet): Generator<void, Uint8Array> {
  const encoded: Uint8Array[] = [];
  for (const each of file) {
    encoded.push(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [each] })));
    yield;
  }
  return Buffer.concat(encoded);
}

/** Calls a function when an upstream's servers change, at a limited rate. Returns a function that stops watching. */
function watchServers(upstream: Upstream, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let dueAtMs = -Infinity;
  const notify = (): void => {
    timer = undefined;
    dueAtMs = performance.now() + serverChangeGapMs;
    changed();
  };
  const stopWatching = upstream.watchServers(() => {
    // equivalent mutant: without unref(), the timer would delay the process's exit.
    timer ??= setTimeout(notify, Math.max(0, dueAtMs - performance.now())).unref();
  });
  return () => {
    stopWatching();
    clearTimeout(timer);
  };
}

/** Returns a source that reads a file. A change is read once two consecutive checks saw the same version. */
function fileSource(path: string, checkMs: number): DescriptorSource {
  let loaded = "";
  return {
    read: async () => {
      loaded = await fileFingerprintOf(path);
      return await readRegularFile(path, maxFileBytes);
    },
    watch: (changed) => {
      let previous = loaded;
      return repeat(checkMs, async () => {
        const fingerprint = await fileFingerprintOf(path);
        // Waits for two equal fingerprints, because a file may be incomplete or missing while it is replaced. `changed`
        // is called until the new file is read, because a reload may use a read that began before the change.
        if (fingerprint !== loaded && fingerprint === previous) changed();
        previous = fingerprint;
      });
    },
  };
}

/** Returns a string that changes when a file is changed, replaced or removed. */
async function fileFingerprintOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    return messageOf(error);
  }
}

/** Calls a function repeatedly, with a pause after each call. Returns a function that stops the calls. */
function repeat(intervalMs: number, run: () => void | Promise<void>): () => void {
  let isStopped = false;
  const timer = setTimeout(() => {
    const restartTimer = (): void => {
      // A call may finish after the stop, and refresh() would start the cleared timer again.
      if (!isStopped) timer.refresh();
    };
    Promise.resolve(run()).then(restartTimer, restartTimer);
  }, intervalMs);
  timer.unref();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
