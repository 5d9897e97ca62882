// The greenhouse in a Fastify application: npx node examples/frameworks/fastify.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import fastify from "fastify";
import { createGateway } from "plantstore/gateway";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const gateway = createGateway({ routes });
const app = fastify();

// The first hook of a request, before any body parser. Where the gateway answers, done is never called and Fastify
// goes no further; what is not the gateway's own comes out of it untouched.
app.addHook("onRequest", (request, reply, done) => gateway.handler(request.raw, reply.raw, done));
app.get("/", (_request, reply) => reply.type("text/html").send("<h1>Greenhouse</h1>\n"));
app.post("/echo", (request, reply) => reply.send(request.body));

await app.ready();
announce(app.server);
