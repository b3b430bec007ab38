// The handler with the JDK's own server.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

class Server {
    static void text(HttpExchange exchange, int status, String body) throws IOException {
        exchange.sendResponseHeaders(status, body.isEmpty() ? -1 : body.length());
        exchange.getResponseBody().write(body.getBytes());
        exchange.close();
    }

    static void handle(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/early")) {
            text(exchange, 413, "too large");
            return;
        }
        int length = exchange.getRequestBody().readAllBytes().length;
        switch (path) {
            case "/chunked" -> {
                exchange.sendResponseHeaders(200, 0);
                for (String part : new String[] {"one ", "two ", "three"}) {
                    exchange.getResponseBody().write(part.getBytes());
                    exchange.getResponseBody().flush();
                }
                exchange.close();
            }
            case "/close" -> {
                exchange.getResponseHeaders().set("Connection", "close");
                text(exchange, 200, "bye");
            }
            case "/empty" -> text(exchange, 204, "");
            case "/error" -> text(exchange, 500, "broken");
            case "/redirect" -> {
                exchange.getResponseHeaders().set("Location", "/echo");
                text(exchange, 302, "");
            }
            case "/large" -> text(exchange, 200, "x".repeat(200_000));
            default -> text(exchange, 200, String.valueOf(length));
        }
    }

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", Server::handle);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.start();
    }
}
