"""Videos: a screen that is a file, an mp4 or gif, which ffmpeg writes while the pictures come, and a small GIF of it.

TensorBoard shows no other moving pictures than a GIF.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sf.storage import output_file
from sf.storage.run_dir import temporary_beside
from sf.system.machine.extras import how_to_install
from sf.system.processes.creator import die_with_creator

_SDL_DRIVERS = ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER")


@contextmanager
def without_window() -> Iterator[None]:
    """SDL, which pygame draws with, looks for no screen and no sound inside, and so complains of none."""
    added = [name for name in _SDL_DRIVERS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "dummy"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


# Browsers play H.264 only with half the colour resolution. With the index first, they begin before they have it all.
_MP4 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast", "-crf", "24", "-movflags", "+faststart"]
_MP4 += ["-f", "mp4"]
# Every picture has its own colours: to choose them once for all, ffmpeg would keep the whole video in memory.
_PALETTE = "split[a][b];[a]palettegen=max_colors=64:stats_mode=single[p];[b][p]paletteuse=new=1:dither=none"
_GIF = ["-filter_complex", _PALETTE, "-loop", "0", "-f", "gif"]

_NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT)))  # what ffmpeg says then
_WHO = re.compile(r"^\[[^]]*] ")  # ffmpeg's component and its address, before a message


class Video:
    """Takes pictures until `finish` or `close`. Only `finish` replaces an earlier file of that name."""

    def __init__(self, path: Path, max_s: float, flag: str = "video", options: Sequence[str] = ()) -> None:
        """max_s: seconds of video after which `show` takes no more. flag: the one that names another place, for
        messages. options: further ones of ffmpeg's encoder.

        Raises ValueError for another kind of file, where it cannot be written, and where ffmpeg is missing.
        """
        if path.suffix not in (".mp4", ".gif"):
            raise ValueError(f"{flag} is {str(path)!r}: name a file that ends with .mp4 or .gif")
        try:
            import imageio_ffmpeg  # noqa: PLC0415  an extra
        except ImportError:
            raise ValueError(f"{flag} needs ffmpeg: {how_to_install('video')}") from None
        self._ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
        output_file.require_writable(flag, path)
        # A link stays one, as elsewhere: its target is written. An environment may change the working directory.
        self._path = path.resolve() if path.is_symlink() else path.absolute()
        self._temporary = temporary_beside(self._path)
        self._max_s = max_s
        self._flag = flag
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._num_left = 0
        self.is_full = False
        # A larger gif would be too large to use: the format has no motion compensation.
        self.max_fps, self.limit = (12.5, (640, 480)) if path.suffix == ".gif" else (60.0, (1920, 1080))

    def open(self, size: tuple[int, int], fps: float, title: str) -> None:
        """size: width and height, even numbers. Raises ValueError where no file can be written there."""
        width, height = size
        self._num_left = round(self._max_s * fps)
        try:
            self._temporary.touch()
        except OSError as error:
            raise ValueError(
                f"{self._path} cannot be written ({error.strerror}): name another --{self._flag}"
            ) from None
        self._process = subprocess.Popen(
            [
                *(self._ffmpeg, "-y", "-v", "error", "-nostdin", "-f", "rawvideo", "-pix_fmt", "rgb24"),
                *("-s", f"{width}x{height}", "-r", f"{fps:.6f}", "-i", "-", "-metadata", f"title={title}"),
                *(_GIF if self._path.suffix == ".gif" else _MP4),
                *self._options,
                f"file:{self._temporary}",  # else ffmpeg takes what stands before a colon for a protocol
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not reach ffmpeg, which has to finish the file
            # An evaluator that is killed takes ffmpeg along, which else could still write a file that nobody removes.
            preexec_fn=die_with_creator,  # noqa: PLW1509  it only calls prctl, also where there are threads
            restore_signals=False,  # else ffmpeg dies of a limit on the size of files instead of reporting it
        )

    def show(self, picture: np.ndarray) -> bool:
        """picture: [H, W, 3] uint8, contiguous. Returns whether there is room for more. Raises ValueError."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.data)
        except OSError:
            _, errors = self._process.communicate()
            raise self._failure(errors) from None
        self._num_left -= 1
        self.is_full = self._num_left <= 0
        return not self.is_full

    def finish(self) -> bool:
        """Returns whether there is a file: none without a picture. Raises ValueError if it cannot be written."""
        if self._process is None:
            return False
        _, errors = self._process.communicate()
        if self._process.returncode != 0:
            raise self._failure(errors)
        self._process = None
        try:
            self._temporary.replace(self._path)
        except OSError as error:
            self.close()
            raise ValueError(f"{self._path} cannot be written: {error}") from None
        return True

    def _failure(self, errors: bytes) -> ValueError:
        """Returns the failure of ffmpeg, which has ended. errors: its output."""
        assert self._process is not None
        status = self._process.returncode
        self.close()
        said = errors.decode(errors="replace").strip().splitlines()
        why = _WHO.sub("", said[-1]) if said else f"ffmpeg ended with status {status}"
        room = "make room, or " if why.endswith(_NO_ROOM) else ""
        return ValueError(f"{self._path} cannot be written: {why}; {room}name another --{self._flag}")

    def close(self) -> None:
        """Leave nothing of a video that is not finished."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._temporary.unlink(missing_ok=True)


MAX_BYTES = 400_000
_MAX_PICTURES = 160
_MAX_FPS = 10.0
_PREVIEW_PALETTE = (
    "split[a][b];[a]palettegen=max_colors=64:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
)
_SMALLER = 0.75  # width and height of the next attempt
_SMALLEST = 48  # pixels of width


def preview(video: Path, seconds: float, width: int) -> bytes:
    """Makes a GIF, as large as fits into `MAX_BYTES`, as fast as the video. Raises ValueError if ffmpeg fails."""
    fps = min(_MAX_FPS, _MAX_PICTURES / max(seconds, 1e-3))
    width = min(width, 400)
    gif = _preview_gif(video, fps, width)
    while len(gif) > MAX_BYTES and width > _SMALLEST:
        width = int(width * _SMALLER)
        gif = _preview_gif(video, fps, width)
    return gif


def size_of(gif: bytes) -> tuple[int, int]:
    """Width and height."""
    return struct.unpack("<HH", gif[6:10])


def _preview_gif(video: Path, fps: float, width: int) -> bytes:
    import imageio_ffmpeg  # noqa: PLC0415  an extra

    done = subprocess.run(
        [
            *(imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-threads", "1", "-i", f"file:{video}"),
            *("-filter_complex", f"fps={fps:.4f},scale={width}:-2:flags=area,{_PREVIEW_PALETTE}"),
            *("-threads", "1", "-loop", "0", "-f", "gif", "-"),
        ],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(f"{video} has no preview: {said[-1] if said else f'ffmpeg ended with {done.returncode}'}")
    return done.stdout
