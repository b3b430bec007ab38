# The handler as a PSGI application, for Starman.
use strict;
use warnings;

sub text {
    my ($status, $body, @headers) = @_;
    return [$status, ['content-length' => length $body, @headers], [$body]];
}

sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    return text(413, 'too large') if $path eq '/early';
    my $length = 0;
    while (my $read = $env->{'psgi.input'}->read(my $buffer, 65536)) { $length += $read }
    return sub {
        my $writer = $_[0]->([200, []]);
        $writer->write($_) for 'one ', 'two ', 'three';
        $writer->close;
    } if $path eq '/chunked';
    return text(200, 'bye', connection => 'close') if $path eq '/close';
    return [204, [], []] if $path eq '/empty';
    return text(500, 'broken') if $path eq '/error';
    return text(302, '', location => '/echo') if $path eq '/redirect';
    return text(200, 'x' x 200_000) if $path eq '/large';
    return text(200, $length);
};
