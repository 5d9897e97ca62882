import type { BinaryWriter } from "@bufbuild/protobuf/wire";
import { ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { compareValues, Differs, type EffectsOf } from "../../../../testing/src/comparison.ts";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GrpcJsOptions } from "../../../src/grpc-js.ts";
import { startGarden } from "../../garden.ts";
import { callGarden, type Message } from "../../grpc-js-client.ts";

// Serves grpc-js handlers with two values for each option, and compares how calls end.

type Callback = (error: Error | null, message?: Message) => void;

/** Compares how GetTree ends, or the error that refuses a value. */
function compareTrees(on: GrpcJsOptions, respond: (callback: Callback) => void): Promise<Differs> {
  return compareValues<GrpcJsOptions>({}, on, async (options) => {
    try {
      await using garden = await startGarden(
        { getTree: (_: unknown, callback: Callback) => respond(callback) },
        options,
      );
      const { messages, code, details } = await callGarden(garden.address.port, { method: "GetTree" });
      return [messages, code, details];
    } catch (error) {
      return String(error).split("\n", 1);
    }
  });
}

const grow = (callback: Callback): void => callback(null, { speciesName: "oak" });
const refuse: ServerInterceptor = (_, call) =>
  new ServerInterceptingCall(call, { start: () => call.sendStatus({ code: 7, details: "not today" }) });

const effects: EffectsOf<GrpcJsOptions> = {
  // Descriptors without the service are refused.
  descriptors: () => compareTrees({ descriptors: descriptorSetOf(GreenhouseService.file) }, grow),
  interceptors: () => compareTrees({ interceptors: [refuse] }, grow),
  // A type that writes other bytes than the definition is refused.
  messages: () => compareTrees({ messages: { Tree: { encode: (_: Message, writer: BinaryWriter) => writer } } }, grow),
  exposeErrorMessages: () => compareTrees({ exposeErrorMessages: true }, (callback) => callback(new Error("no oak"))),
};

test.each(Object.entries(effects))("the addGrpcJsService option %s has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
