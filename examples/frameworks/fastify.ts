// The greenhouse in a Fastify application: npx node examples/frameworks/fastify.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import cors from "@fastify/cors";
import helmet from "@fastify/helmet";
import fastify, { type FastifyInstance } from "fastify";
import { createGateway } from "@plantstore/gateway";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const gateway = createGateway({ routes });
const app = fastify();

app.register(helmet);
app.register(cors, { origin: "https://shop.example" });
// A plugin, encapsulated: its hooks and body parsers are not those of the application. Its route takes what no other
// route takes, and hands back what is not the gateway's own.
app.register(async (greenhouse: FastifyInstance) => {
  greenhouse.removeAllContentTypeParsers();
  // The gateway reads bodies itself.
  greenhouse.addContentTypeParser("*", (_request, _body, done) => done(null));
  // A plugin for CORS has a route of its own for every OPTIONS.
  const taken = greenhouse.hasRoute({ method: "OPTIONS", url: "/*" }) ? ["OPTIONS"] : [];
  greenhouse.route({
    method: greenhouse.supportedMethods.filter((method) => !taken.includes(method)),
    url: "/*",
    handler: (request, reply) => {
      // What hooks have set on `reply` would otherwise not be sent with the gateway's response.
      for (const [name, value = ""] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
      gateway.handler(request.raw, reply.raw, (fault) =>
        fault === undefined ? reply.callNotFound() : reply.send(fault),
      );
    },
  });
});
app.get("/", (_request, reply) => reply.type("text/html").send("<h1>Greenhouse</h1>\n"));
app.post("/echo", (request, reply) => reply.send(request.body));

await app.ready();
announce(app.server);
