import { expect, test, vi } from "vitest";
import { collect } from "@protoport/testing/process";
import { convertStream } from "../../src/serve/stream-messages.ts";
import { throws } from "../../../testing/src/callback-forms.ts";

test("convertStream closes its source when a conversion fails", async () => {
  const close = vi.fn(async () => ({ done: true, value: undefined }) as const);
  const source: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => ({ next: async () => ({ value: "message" }), return: close }),
  };
  const converted = convertStream(source, throws(new Error("the message is not valid")));
  await expect(collect(converted)).rejects.toThrow("the message is not valid");
  expect(close).toHaveBeenCalledOnce();
});
