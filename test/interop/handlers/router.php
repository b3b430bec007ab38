<?php
// The handler for PHP's built-in server.
function text(int $status, string $body): void
{
    http_response_code($status);
    header('content-length: ' . strlen($body));
    echo $body;
}

$path = $_SERVER['REQUEST_URI'];
$length = strlen(file_get_contents('php://input'));
switch ($path) {
    case '/early':
        text(413, 'too large');
        break;
    case '/chunked':
        foreach (['one ', 'two ', 'three'] as $part) {
            echo $part;
            flush();
        }
        break;
    case '/close':
        header('connection: close');
        text(200, 'bye');
        break;
    case '/empty':
        http_response_code(204);
        break;
    case '/error':
        text(500, 'broken');
        break;
    case '/redirect':
        header('location: /echo', true, 302);
        break;
    case '/large':
        text(200, str_repeat('x', 200000));
        break;
    default:
        text(200, (string) $length);
}
