import type { ContextKey, ContextValues } from "@connectrpc/connect";

/**
 * The context values of one request.
 *
 * Behaves as what Connect's `createContextValues` returns, without making three functions for each
 * request.
 */
export class RequestContextValues implements ContextValues {
  [id: symbol]: unknown;

  get<T>(key: ContextKey<T>): T {
    return key.id in this ? (this[key.id] as T) : key.defaultValue;
  }

  set<T>(key: ContextKey<T>, value: T): this {
    this[key.id] = value;
    return this;
  }

  delete(key: ContextKey<unknown>): this {
    delete this[key.id];
    return this;
  }
}
