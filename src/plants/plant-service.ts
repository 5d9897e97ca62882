import type { ContextValues, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { idMissing, plantNotFound } from "./errors.ts";
import type { DeleteCall, PlantStore } from "./plant-store.ts";

/** What the plant service is made of. */
export interface PlantServiceOptions {
  readonly store: PlantStore;
  /** Who asks, for the deletion record. Handed in, because plants knows nothing of credentials. */
  readonly subjectOf: (contextValues: ContextValues) => string;
  /** The id that ties the call to its log lines. */
  readonly requestIdOf: (contextValues: ContextValues) => string;
  /** Why a call was given up; `undefined` while it is wanted. Handed in, because only who serves the call knows it without a signal. */
  readonly abortReasonOf: (context: HandlerContext) => unknown;
}

/**
 * Creates the implementation of `plantstore.v1.PlantService`.
 *
 * `deletePlant` answers once the deletion is durable. It throws `InvalidArgument` when the request
 * has no id, `NotFound` when no plant has it, and passes on what the store throws.
 */
export function createPlantService(options: PlantServiceOptions): ServiceImpl<typeof PlantService> {
  return {
    async deletePlant(request, context) {
      const { id } = request;
      if (id === undefined) throw idMissing();
      const deleted = await options.store.delete(id, new ContextCall(options, context));
      if (!deleted) throw plantNotFound(id);
      return {};
    },
  };
}

/**
 * What the store may ask about a call. Each answer is worked out when it is asked for: a store that
 * keeps no record never asks, and a signal that nobody reads is never built.
 */
class ContextCall implements DeleteCall {
  readonly #options: PlantServiceOptions;
  readonly #context: HandlerContext;

  constructor(options: PlantServiceOptions, context: HandlerContext) {
    this.#options = options;
    this.#context = context;
  }

  get subject(): string {
    return this.#options.subjectOf(this.#context.values);
  }

  get requestId(): string {
    return this.#options.requestIdOf(this.#context.values);
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get abortReason(): unknown {
    return this.#options.abortReasonOf(this.#context);
  }
}
