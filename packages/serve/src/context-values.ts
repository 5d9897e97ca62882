import type { ContextKey, ContextValues } from "@connectrpc/connect";

/**
 * A call's context values. Connect's implementation creates three closures per call. The closures would stay in memory
 * while the call is pending.
 */
export class CallValues implements ContextValues {
  get<T>({ id, defaultValue }: ContextKey<T>): T {
    return id in this ? ((this as Stored<T>)[id] as T) : defaultValue;
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    (this as Stored<T>)[id] = value;
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    delete (this as Stored<unknown>)[id];
    return this;
  }
}

type Stored<T> = Record<symbol, T>;
