import type { DescService } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { GreenhouseService, LibraryService, serviceWithRoutes } from "@protoport/testing/proxy";
import { compileRestRoutes } from "../../../gateway/src/protocols/rest/rules/index.ts";
import { UnknownPaths } from "../../src/forward/unknown-paths.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => vi.useRealTimers());

const know = (paths: UnknownPaths, services: readonly DescService[], prefix = ""): void =>
  paths.setKnown(services, { rest: compileRestRoutes(services.flatMap((service) => service.methods)), prefix });

/** Returns whether a path may be new, without the rate limit. */
function mayBeNew(paths: UnknownPaths, path: string): boolean {
  vi.advanceTimersByTime(5_000);
  return paths.mayBeNew(path);
}

test("mayBeNew returns true for unknown paths below known prefixes", () => {
  const paths = new UnknownPaths();
  know(paths, [GreenhouseService]);
  expect(mayBeNew(paths, "/greenhouse.v1.OtherService/Call")).toBe(true);
  expect([mayBeNew(paths, "/sensors/7/unknown"), mayBeNew(paths, "/sensors:list")]).toEqual([true, true]);
  expect(mayBeNew(paths, "/other.v1.OtherService/Call")).toBe(false);
  expect(mayBeNew(paths, "/greenhouse.v1.GreenhouseService")).toBe(false);
  expect([mayBeNew(paths, "/favicon.ico"), mayBeNew(paths, "/")]).toEqual([false, false]);
});

test("mayBeNew returns false below prefixes of removed services", () => {
  const paths = new UnknownPaths();
  const successors: readonly DescService[] = [GreenhouseService, LibraryService, GreenhouseService];
  for (const service of successors) {
    know(paths, [service]);
    const isGreenhouse = service === GreenhouseService;
    expect(mayBeNew(paths, "/sensors/7/unknown")).toBe(isGreenhouse);
    expect(mayBeNew(paths, "/greenhouse.v1.Other/Call")).toBe(isGreenhouse);
    expect(mayBeNew(paths, "/v1/unknown")).toBe(!isGreenhouse);
    expect(mayBeNew(paths, "/library.v1.Other/Call")).toBe(!isGreenhouse);
  }
});

test("mayBeNew ignores a variable at the start of a route", () => {
  const paths = new UnknownPaths();
  know(paths, [serviceWithRoutes("a.v1.A", { Get: ["GET /{id}/beds"] })]);
  expect(mayBeNew(paths, "/7/unknown")).toBe(false);
});

test("mayBeNew requires the proxy's path prefix", () => {
  const paths = new UnknownPaths();
  know(paths, [GreenhouseService], "/api");
  expect([mayBeNew(paths, "/api/sensors/7/unknown"), mayBeNew(paths, "/sensors/7/unknown")]).toEqual([true, false]);
  expect(mayBeNew(paths, "/xyz/sensors/7/unknown")).toBe(false);
});

test("mayBeNew returns true at most once in five seconds", () => {
  const paths = new UnknownPaths();
  know(paths, [GreenhouseService]);
  for (let times = 0; times < 3; times++) {
    expect([mayBeNew(paths, "/sensors/7/unknown"), paths.mayBeNew("/sensors/8/unknown")]).toEqual([true, false]);
    vi.advanceTimersByTime(4_999);
    expect(paths.mayBeNew("/sensors/8/unknown")).toBe(false);
    vi.advanceTimersByTime(1);
  }
});

test("mayBeNew does not count paths outside known prefixes towards its rate limit", () => {
  const paths = new UnknownPaths();
  know(paths, [GreenhouseService]);
  expect([mayBeNew(paths, "/favicon.ico"), paths.mayBeNew("/sensors/7/unknown")]).toEqual([false, true]);
});
