import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { GatewayOptions, RestOptions } from "../../src/index.ts";
import { Answers, type Letter, Letters, PlainLetters, Samples } from "../../../testing/src/gen/moved/v1/moved_pb.ts";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { throws } from "../../../testing/src/callback-forms.ts";

/** Handlers equivalent to those in grpc-gateway's integration tests. Calls `onWait` for each call that waits. */
export function migrationOptions(rest: RestOptions, onWait: (signal: AbortSignal) => void = () => {}): GatewayOptions {
  const wait = async ({ signal }: HandlerContext): Promise<never> => {
    onWait(signal);
    return await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const sendBody = (letter: Letter, { responseHeader, responseTrailer }: HandlerContext): Letter => {
    setFields(responseHeader, 1);
    setFields(responseTrailer, 2);
    return letter;
  };
  const pieces = ["Hello 1", "Hello 2"];
  // oxfmt-ignore
  return {
    routes: (router) =>
      router
        .service(Letters, {
          send: (letter) => letter, sendBody,
          refuse: throws(new ConnectError("no", Code.Unauthenticated, { "www-authenticate": "Bearer" })),
          updateFreeForm: (request) => request, updateOddNames: moveMaskToHeader,
          updateOwnJsonNames: moveMaskToHeader, greet: (greeting) => greeting,
        })
        .service(PlainLetters, { send: (letter) => letter, sendBody })
        .service(Samples, {
          createFromPath: (sample) => sample,
          create: (sample) => sample,
          get: ({ id }, context) => {
            context.responseHeader.set("uuid", id);
            if (id === "some") return { fString: "prefix/some", fBool: true };
            setFields(context.responseTrailer, 2);
            throw new ConnectError("not found", Code.NotFound);
          },
          exists: ({ id }) => {
            if (id !== "some") throw new ConnectError("not found", Code.NotFound);
            return {};
          },
          delete: () => ({}),
          askOptions: (_, { responseHeader }) => {
            responseHeader.set("allow", "OPTIONS, GET, HEAD, POST, PUT, TRACE");
            return {};
          },
          trace: () => ({ fBool: true }),
          update: (request) => request,
          async createMany(samples, { requestHeader, responseHeader, responseTrailer }) {
            const error = requestHeader.get("error");
            if (error !== null) throw new ConnectError(`error metadata: ${error}`, Code.InvalidArgument);
            let count = 0;
            for await (const _ of samples) count++;
            responseHeader.set("count", String(count));
            setFields(responseTrailer, 2);
            return {};
          },
          async *list(_, { responseHeader }) {
            responseHeader.set("count", "2");
            for (const fString of ["a", "b"]) yield create(SinkSchema, { fString });
          },
          relay: (texts) => texts,
          async *download({ fails }) {
            for (const piece of pieces) yield { contentType: "text/html", data: Buffer.from(piece) };
            if (fails) throw new ConnectError("error", Code.InvalidArgument);
          },
          say: (text) => text,
          sayDeep: (sample) => sample,
          wait: (_, context) => wait(context),
          async *waitStream(_, context) {
            yield await wait(context);
          },
          checkQuery: (sample) => sample,
        })
        .service(Answers, {
          getAnswer: ({ value }) => ({
            label: { name: value },
            labels: [{ name: value }],
            words: value === "empty" ? [] : ["hello", value],
            answer: value,
          }),
          async *streamAnswers({ value }) {
            for (const which of ["first", "second"]) yield { label: { name: `${which} ${value}` } };
          },
        }),
    rest: { ...rest,
      rules: [{ selector: "moved.v1.PlainLetters.Send", pattern: { case: "post", value: "/v2/letters/{id}" },
          additionalBindings: [{ pattern: { case: "get", value: "/v2/letters/{id}/{number}" } },
            { pattern: { case: "get", value: "/v2/letters/{id}/{number}/{language}" } },
            { pattern: { case: "get", value: "/v2/letters1/{id}/{line}/{status.text}" } },
            { pattern: { case: "get", value: "/v2/letters2/{mark.text}" } }] },
        { selector: "moved.v1.PlainLetters.SendBody", pattern: { case: "post", value: "/v2/letter_body" },
          body: "*" }] },
  };
}

/** Responds with a request, and with its mask as a header field, because JSON cannot express all its names. */
function moveMaskToHeader<Request extends { updateMask?: FieldMask | undefined }>(
  request: Request,
  { responseHeader }: HandlerContext,
): Request {
  responseHeader.set("x-update-mask", request.updateMask?.paths.join(",") ?? "");
  delete request.updateMask;
  return request;
}

function setFields(fields: Headers, of: number): void {
  fields.set("foo", `foo${of}`);
  fields.set("bar", `bar${of}`);
}
